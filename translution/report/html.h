#pragma once

#include <string>
#include <vector>

#include "translution/core/export.h"
#include "translution/io/image.h"

namespace translution {

/// Escapes text for use between tags and in quoted attributes. Control characters, which HTML does
/// not allow, become the replacement character.
TRANSLUTION_API std::string html_escape(const std::string& text);

/// The text, cut to `most` characters (UTF-8) if it is longer. An ellipsis replaces the middle,
/// since long names often differ at their ends.
TRANSLUTION_API std::string shortened(const std::string& text, size_t most);

TRANSLUTION_API std::string base64(const std::string& bytes);
/// The image as "data:image/png;base64,…".
TRANSLUTION_API std::string image_uri(const RgbImage& image);

/// A table with a header row; all cells are plain text. The first cell of a row is its name.
struct HtmlTable {
  std::vector<std::string> head;
  std::vector<std::vector<std::string>> rows;
};
TRANSLUTION_API std::string html_table(const HtmlTable& table);

/// Title and caption are plain text; both may be empty.
struct HtmlFigure {
  std::string kind;  ///< class names of the style sheet
  std::string title, content, caption;
};
TRANSLUTION_API std::string html_figure(const HtmlFigure& figure);

struct HtmlSection {
  std::string title;    ///< plain text
  std::string content;  ///< HTML
  int colour = -1;      ///< of the run that it shows; -1: none
};

/// A complete, self-contained page with a line of links to its sections.
TRANSLUTION_API std::string html_page(const std::string& title, const std::string& subtitle,
                                      const std::vector<HtmlSection>& sections);

/// Number of colours in the style sheet.
constexpr int kColours = 8;
/// The style sheet's class for the colour of run or series `index`; colours repeat.
TRANSLUTION_API std::string colour_class(int index);

}  // namespace translution
