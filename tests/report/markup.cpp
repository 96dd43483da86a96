#include "tests/report/markup.h"

#include <regex>
#include <set>

namespace translution {
namespace {

std::string text_fault(const std::string& text) {
  static const std::regex entity("&(amp|lt|gt|quot|#39);");
  const std::string rest = std::regex_replace(text, entity, "");
  return rest.find_first_of("<>&") == std::string::npos ? ""
                                                        : "unescaped character in '" + text + "'";
}

struct Tag {
  bool closes, self_closing;  // </x>, <x/>
  std::string name;
};

// The tag between '<' and '>'; for an invalid one, a name that begins with '?'.
Tag parse_tag(const std::string& inside) {
  static const std::regex form("(/?)([a-zA-Z][a-zA-Z0-9]*)((?:\\s+[a-zA-Z-]+=\"[^\"<>]*\")*)(/?)");
  std::smatch match;
  if (!std::regex_match(inside, match, form)) return {false, false, "?" + inside};
  return {match[1].length() > 0, match[4].length() > 0, match[2]};
}

class Checker {
 public:
  std::string check(const std::string& page) {
    size_t at = page.find('\n') + 1;  // after the document type
    while (at < page.size() && fault_.empty()) at = check_next_tag(page, at);
    if (fault_.empty() && !open_.empty()) fault_ = "<" + open_.back() + "> is never closed";
    return fault_;
  }

 private:
  // Checks the text from `at` to the next tag, and the tag; returns the index after it.
  size_t check_next_tag(const std::string& page, size_t at) {
    const size_t begin = page.find('<', at), end = page.find('>', begin);
    const bool in_style = !open_.empty() && open_.back() == "style";
    if (!in_style) fault_ = text_fault(page.substr(at, begin - at));
    if (begin == std::string::npos) return page.size();
    if (end == std::string::npos) fault_ = "a tag has no end";
    if (fault_.empty()) nest(parse_tag(page.substr(begin + 1, end - begin - 1)));
    return end + 1;
  }

  void nest(const Tag& tag) {
    static const std::set<std::string> kVoid = {"meta", "img", "br"};
    if (tag.name[0] == '?') {
      fault_ = "not a tag: '" + tag.name + "'";
    } else if (tag.closes) {
      if (open_.empty() || open_.back() != tag.name) fault_ = "</" + tag.name + "> closes nothing";
      if (fault_.empty()) open_.pop_back();
    } else if (!tag.self_closing && kVoid.count(tag.name) == 0) {
      open_.push_back(tag.name);
    }
  }

  std::vector<std::string> open_;
  std::string fault_;
};

}  // namespace

std::string markup_fault(const std::string& page) { return Checker().check(page); }

std::vector<std::string> attribute_values(const std::string& page, const std::string& name) {
  std::vector<std::string> values;
  const std::string key = " " + name + "=\"";
  for (size_t at = page.find(key); at != std::string::npos; at = page.find(key, at)) {
    at += key.size();
    values.push_back(page.substr(at, page.find('"', at) - at));
  }
  return values;
}

}  // namespace translution
