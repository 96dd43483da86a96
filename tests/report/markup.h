#pragma once

#include <string>
#include <vector>

namespace translution {

/// What is wrong with the page's markup, or nothing: tags that do not nest, attributes without
/// quotes, `<` or `&` loose in the text.
std::string markup_fault(const std::string& page);

/// All values of the attribute, in order.
std::vector<std::string> attribute_values(const std::string& page, const std::string& name);

}  // namespace translution
