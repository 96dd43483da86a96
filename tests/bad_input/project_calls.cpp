#include <ATen/ATen.h>

#include "tests/bad_input/wrong_calls.h"
#include "translution/ops/project.h"

namespace translution {
namespace {

struct Call {
  at::Tensor x = at::zeros({2, 5, 6});
  std::vector<at::Tensor> weights = {at::zeros({6, 4}), at::zeros({6, 3})};
  std::vector<at::Tensor> biases = {at::zeros({4}), at::zeros({3})};
  bool transposed = false;
};

// A valid call of project with one change.
template <typename Change>
std::function<void()> with(Change change) {
  return [change] {
    Call call;
    change(call);
    project(call.x, call.weights, call.biases, call.transposed);
  };
}

}  // namespace

std::vector<WrongCall> wrong_project_calls() {
  return {
      {"project without x", with([](Call& c) { c.x = at::Tensor(); }),
       "project: x [..., in] is missing"},
      {"project of a scalar", with([](Call& c) { c.x = at::zeros({}); }),
       "project: x must be [..., in], got []"},
      {"project of integers", with([](Call& c) { c.x = c.x.to(at::kLong); }),
       "project: x must hold floating-point numbers, got Long; convert it"},
      {"project without weights", with([](Call& c) { c.weights.clear(), c.biases.clear(); }),
       "project: expected 1 to 16 weights, got 0"},
      {"project with too many weights", with([](Call& c) {
         c.weights.assign(17, c.weights[0]);
         c.biases.clear();
       }),
       "project: expected 1 to 16 weights, got 17"},
      {"project with a missing weight", with([](Call& c) { c.weights[1] = at::Tensor(); }),
       "project: a weight or bias is missing"},
      {"project with a missing bias", with([](Call& c) { c.biases[0] = at::Tensor(); }),
       "project: a weight or bias is missing"},
      {"project with one bias for two weights", with([](Call& c) { c.biases.pop_back(); }),
       "project: expected no bias or one for each weight, got 1 for 2 weights"},
      {"project with a table", with([](Call& c) {
         c.weights[0] = at::zeros({9, 6, 4});
       }),
       "project: weight must be [in, out], got [9, 6, 4]"},
      {"project with a vector for a weight", with([](Call& c) {
         c.weights[1] = at::zeros({6});
         c.transposed = true;
         c.weights[0] = c.weights[0].t();
       }),
       "project: weight must be [out, in], got [6]"},
      {"project of another number of channels", with([](Call& c) {
         c.x = at::zeros({2, 7});
       }),
       "project: weight has size 6 in dimension 0, expected 7 (the channels of x); its shape is "
       "[6, 4]"},
      {"project with weights that are not transposed", with([](Call& c) { c.transposed = true; }),
       "project: weight has size 4 in dimension 1, expected 6 (the channels of x); its shape is "
       "[6, 4]"},
      {"project with a matrix for a bias", with([](Call& c) {
         c.biases[0] = at::zeros({1, 4});
       }),
       "project: bias must be [out], got [1, 4]"},
      {"project with a bias of another width", with([](Call& c) { c.biases[1] = at::zeros({4}); }),
       "project: bias has size 4 in dimension 0, expected 3 (the width of the weight); its shape "
       "is "
       "[4]"},
      {"project with a weight in double",
       with([](Call& c) { c.weights[1] = c.weights[1].to(at::kDouble); }),
       "project: weight is Double but x is Float; convert one of them"},
      {"project with a bias on another device",
       with([](Call& c) { c.biases[1] = c.biases[1].to(at::kMeta); }),
       "project: bias is on meta but x is on cpu; move one of them"},
  };
}

}  // namespace translution
