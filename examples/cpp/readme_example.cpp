#include <iostream>

#include "translution/nn/attention.h"

int main() {
  // 7x7 patches behind a class token, 192 channels, 3 heads of 64: a matrix for each of 172 slots.
  const auto options = translution::AttentionOptions(192).heads(3).grid({7, 7}).cls(true);
  translution::Translution layer(options);
  const auto x = torch::randn({2, 50, 192});  // [B, N, C]
  const auto y = layer->forward(x);           // [B, N, C]
  y.sum().backward();                         // gradients for every table
  std::cout << y.sizes() << "  query " << layer->named_parameters()["query"].sizes() << "\n";
}
