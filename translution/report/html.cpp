#include "translution/report/html.h"

#include <fmt/format.h>

namespace translution {

extern const char* const embedded_chart;   // chart.css
extern const char* const embedded_report;  // report.css

namespace {

std::string element(const char* tag, const std::string& text) {
  return text.empty() ? "" : fmt::format("<{0}>{1}</{0}>", tag, html_escape(text));
}

std::string swatch(int colour) {
  if (colour < 0) return "";
  return fmt::format("<span class=\"swatch {}\"></span>", colour_class(colour));
}

std::string navigation(const std::vector<HtmlSection>& sections) {
  std::string links;
  for (size_t i = 0; i < sections.size(); ++i)
    links += fmt::format("<a href=\"#s{}\">{}{}</a>\n", i, swatch(sections[i].colour),
                         html_escape(sections[i].title));
  return "<nav>\n" + links + "</nav>\n";
}

bool is_continuation(char byte) { return (static_cast<unsigned char>(byte) & 0xc0) == 0x80; }

}  // namespace

std::string html_escape(const std::string& text) {
  std::string safe;
  for (const char letter : text) {
    const auto code = static_cast<unsigned char>(letter);
    if (letter == '&')
      safe += "&amp;";
    else if (letter == '<')
      safe += "&lt;";
    else if (letter == '>')
      safe += "&gt;";
    else if (letter == '"')
      safe += "&quot;";
    else if (letter == '\'')
      safe += "&#39;";
    else if ((code < ' ' && letter != '\n' && letter != '\t') || code == 0x7f)
      safe += "\xef\xbf\xbd";
    else
      safe += letter;
  }
  return safe;
}

std::string shortened(const std::string& text, size_t most) {
  std::vector<size_t> starts;  // the first byte of each character
  for (size_t i = 0; i < text.size(); ++i)
    if (!is_continuation(text[i])) starts.push_back(i);
  if (starts.size() <= most) return text;
  const size_t tail = (most - 1) / 2, head = most - 1 - tail;
  return text.substr(0, starts[head]) + "…" + text.substr(starts[starts.size() - tail]);
}

std::string base64(const std::string& bytes) {
  constexpr const char* kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  for (size_t i = 0; i < bytes.size(); i += 3) {
    uint32_t group = 0;
    for (size_t j = i; j < i + 3; ++j)
      group = group << 8 | (j < bytes.size() ? static_cast<uint8_t>(bytes[j]) : 0u);
    for (int shift = 18; shift >= 0; shift -= 6) text += kDigits[group >> shift & 63];
  }
  const size_t padding = (3 - bytes.size() % 3) % 3;
  return text.replace(text.size() - padding, padding, padding, '=');
}

std::string image_uri(const RgbImage& image) {
  return "data:image/png;base64," + base64(encode_png(image));
}

std::string html_table(const HtmlTable& table) {
  std::string text = "<div class=\"scroll\"><table>\n<thead><tr>";
  for (const auto& cell : table.head) text += "<th>" + html_escape(cell) + "</th>";
  text += "</tr></thead>\n<tbody>\n";
  for (const auto& row : table.rows) {
    text += "<tr>";
    for (size_t i = 0; i < row.size(); ++i)
      text += fmt::format("<{0}>{1}</{0}>", i == 0 ? "th" : "td", html_escape(row[i]));
    text += "</tr>\n";
  }
  return text + "</tbody></table></div>\n";
}

std::string html_figure(const HtmlFigure& figure) {
  return fmt::format("<figure class=\"{}\">{}\n{}{}</figure>\n", figure.kind,
                     element("h3", figure.title), figure.content,
                     element("figcaption", figure.caption));
}

std::string html_page(const std::string& title, const std::string& subtitle,
                      const std::vector<HtmlSection>& sections) {
  std::string body;
  for (size_t i = 0; i < sections.size(); ++i)
    body += fmt::format("<section id=\"s{}\">\n<h2>{}{}</h2>\n{}</section>\n", i,
                        swatch(sections[i].colour), html_escape(sections[i].title),
                        sections[i].content);
  // The policy makes the browser block scripts and everything outside the file.
  return fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" "
      "content=\"default-src 'none'; img-src data:; style-src 'unsafe-inline'\">\n"
      "<title>{0}</title>\n<style>\n{1}</style>\n</head>\n<body>\n<main>\n"
      "<header>\n<h1>{0}</h1>\n{2}</header>\n{3}{4}</main>\n</body>\n</html>\n",
      html_escape(title), std::string(embedded_chart) + embedded_report, element("p", subtitle),
      sections.size() > 1 ? navigation(sections) : "", body);
}

std::string colour_class(int index) { return fmt::format("c{}", index % kColours); }

}  // namespace translution
