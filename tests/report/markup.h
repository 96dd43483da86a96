#pragma once

#include <string>
#include <vector>

namespace translution {

/// The first error in the page's markup: tags that do not nest, attributes without quotes,
/// unescaped
/// `<` or `&` in the text. Empty if there is none.
std::string markup_fault(const std::string& page);

/// All values of the attribute, in order.
std::vector<std::string> attribute_values(const std::string& page, const std::string& name);

}  // namespace translution
