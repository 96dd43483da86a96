#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace translution {

/// How the classes of data differ from those that a model was trained on, as in
/// "'cat' is missing, 'kat' is new". Empty where names and order are the same.
std::string class_difference(const std::vector<std::string>& trained,
                             const std::vector<std::string>& now);

/// Is the text UTF-8? Checkpoints and logs are JSON and hold no other.
bool is_utf8(std::string_view text);

/// The text for a message, with each byte that is not UTF-8 as "\xFF".
std::string escape_bytes(std::string_view text);

}  // namespace translution
