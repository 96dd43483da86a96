#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace translution {

/// Describes how the classes of the data differ from the ones a model was trained on, as in
/// "'cat' is missing, 'kat' is new". Empty if names and order are the same.
std::string class_difference(const std::vector<std::string>& trained,
                             const std::vector<std::string>& now);

/// Whether the text is UTF-8. Checkpoints and logs are JSON, which requires it.
bool is_utf8(std::string_view text);

/// The text with each byte that is not UTF-8 as an escape such as "\xFF", for messages.
std::string escape_bytes(std::string_view text);

}  // namespace translution
