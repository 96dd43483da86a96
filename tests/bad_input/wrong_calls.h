#pragma once

#include <functional>
#include <string>
#include <vector>

namespace translution {

/// A call that must throw, and the complete first line of the expected message.
struct WrongCall {
  std::string name;
  std::function<void()> call;
  std::string message;
};

std::vector<WrongCall> wrong_core_calls();
std::vector<WrongCall> wrong_attention_calls();
std::vector<WrongCall> wrong_method_calls();
std::vector<WrongCall> wrong_project_calls();
std::vector<WrongCall> wrong_precision_calls();
std::vector<WrongCall> wrong_layer_calls();
std::vector<WrongCall> wrong_model_calls();

}  // namespace translution
