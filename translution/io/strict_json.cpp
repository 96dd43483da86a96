#include "translution/io/strict_json.h"

#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "translution/core/error.h"
#include "translution/core/message.h"

namespace translution {

using namespace detail;

namespace {

using Json = nlohmann::json;

// Throws for text that is not JSON, and for what the library would accept. This is a separate pass
// before parsing: the library's parser callback takes quadratic time for wide objects.
class Check : public nlohmann::json_sax<Json> {
 public:
  explicit Check(int depth) : depth_(depth) {}

  bool start_object(size_t) override { return open(); }
  bool start_array(size_t) override { return open(); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }
  bool key(std::string& key) override {
    ensure(keys_.back().insert(key).second, "has the key ", in_quotes(key), " twice");
    return true;
  }
  bool parse_error(size_t position, const std::string&, const Json::exception& error) override {
    constexpr int kOutOfRange = 406;
    ensure(error.id != kOutOfRange, "has a number out of range at byte ", position);
    throw std::runtime_error(join("is not JSON at byte ", position));
  }

  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(int64_t) override { return true; }
  bool number_unsigned(uint64_t) override { return true; }
  bool number_float(double, const std::string&) override { return true; }
  bool string(std::string&) override { return true; }
  bool binary(Json::binary_t&) override { return true; }

 private:
  bool open() {
    keys_.emplace_back();
    ensure(static_cast<int>(keys_.size()) <= depth_, "is nested more than ", depth_,
           " levels deep");
    return true;
  }
  bool close() {
    keys_.pop_back();
    return true;
  }

  const int depth_;
  std::vector<std::set<std::string>> keys_;  // one set per open object or array
};

}  // namespace

void check_strict_json(std::string_view text, int depth) {
  Check check(depth);
  Json::sax_parse(text, &check);
}

}  // namespace translution
