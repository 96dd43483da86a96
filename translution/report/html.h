#pragma once

#include <string>
#include <vector>

#include "translution/core/export.h"
#include "translution/io/image.h"

namespace translution {

/// Text made safe between tags and in quoted attributes. Control characters, which HTML does not
/// allow, become the replacement character.
TRANSLUTION_API std::string html_escape(const std::string& text);

/// At most `most` characters (UTF-8): where there are more, an ellipsis takes the place of the
/// middle, since long names often differ at their ends.
TRANSLUTION_API std::string shortened(const std::string& text, size_t most);

TRANSLUTION_API std::string base64(const std::string& bytes);
/// The image as "data:image/png;base64,…".
TRANSLUTION_API std::string image_uri(const RgbImage& image);

/// Rows under a head; all cells are plain text. The first cell of a row names it.
struct HtmlTable {
  std::vector<std::string> head;
  std::vector<std::vector<std::string>> rows;
};
TRANSLUTION_API std::string html_table(const HtmlTable& table);

/// Title and caption are plain text; both may be empty.
struct HtmlFigure {
  std::string kind;  ///< classes of the style sheet
  std::string title, content, caption;
};
TRANSLUTION_API std::string html_figure(const HtmlFigure& figure);

struct HtmlSection {
  std::string title;    ///< plain text
  std::string content;  ///< HTML
  int colour = -1;      ///< of the run that it is about; -1 for none
};

/// A whole page that refers to nothing outside itself, with a line of links to its sections.
TRANSLUTION_API std::string html_page(const std::string& title, const std::string& subtitle,
                                      const std::vector<HtmlSection>& sections);

/// So many colours the style sheet has.
constexpr int kColours = 8;
/// The class of the style sheet for the colour of run or series `index`; they repeat.
TRANSLUTION_API std::string colour_class(int index);

}  // namespace translution
