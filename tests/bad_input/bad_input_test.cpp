#include <c10/util/Exception.h>
#include <gtest/gtest.h>

#include <set>
#include <stdexcept>

#include "tests/bad_input/wrong_calls.h"

namespace translution {
namespace {

// The first line of the error message; "(accepted)" if the call does not throw.
std::string refusal(const WrongCall& wrong) {
  std::string message = "(accepted)";
  try {
    wrong.call();
  } catch (const c10::Error& error) {
    message = error.what_without_backtrace();
  } catch (const std::invalid_argument& error) {
    message = error.what();
  }
  return message.substr(0, message.find('\n'));
}

int expect_refused(const std::vector<WrongCall>& calls) {
  for (const auto& wrong : calls) EXPECT_EQ(refusal(wrong), wrong.message) << wrong.name;
  return static_cast<int>(calls.size());
}

TEST(BadInput, ToTablesAndNamesIsRefusedInOneLine) {
  EXPECT_GE(expect_refused(wrong_core_calls()), 25);
}

TEST(BadInput, ToTheAttentionOpIsRefusedInOneLine) {
  EXPECT_GE(expect_refused(wrong_attention_calls()), 30);
}

TEST(BadInput, ToAMethodIsRefusedInOneLine) { EXPECT_GE(expect_refused(wrong_method_calls()), 25); }

TEST(BadInput, ToAProjectionIsRefusedInOneLine) {
  EXPECT_GE(expect_refused(wrong_project_calls()), 15);
}

TEST(BadInput, OfAnotherPrecisionIsRefusedInOneLine) {
  EXPECT_GE(expect_refused(wrong_precision_calls()), 40);
}

TEST(BadInput, ToALayerIsRefusedInOneLine) { EXPECT_GE(expect_refused(wrong_layer_calls()), 25); }

TEST(BadInput, ToAModelIsRefusedInOneLine) { EXPECT_GE(expect_refused(wrong_model_calls()), 25); }

TEST(BadInput, CasesHaveUniqueNames) {
  std::set<std::string> names;
  size_t count = 0;
  for (const auto& calls :
       {wrong_core_calls(), wrong_attention_calls(), wrong_method_calls(), wrong_project_calls(),
        wrong_precision_calls(), wrong_layer_calls(), wrong_model_calls()}) {
    for (const auto& wrong : calls) names.insert(wrong.name);
    count += calls.size();
  }
  EXPECT_EQ(names.size(), count);
  EXPECT_GE(count, 60u);
}

}  // namespace
}  // namespace translution
