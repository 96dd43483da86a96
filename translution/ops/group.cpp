#include "translution/ops/group.h"

#include <c10/util/Exception.h>

#include <map>
#include <mutex>

#include "translution/core/error.h"
#include "translution/core/message.h"

namespace translution {

using namespace detail;

namespace {

struct Registry {
  std::mutex mutex;
  std::map<std::string, GroupSum> groups;
};

Registry& registry() {
  static Registry all;
  return all;
}

}  // namespace

GroupRegistration register_group(std::string name, GroupSum sum) {
  require(!name.empty(), "group: expected a name, got none");
  const std::lock_guard lock(registry().mutex);
  require(registry().groups.emplace(name, std::move(sum)).second, "group: the name ",
          in_quotes(name), " is in use; choose another");
  return GroupRegistration(std::move(name));
}

GroupRegistration::~GroupRegistration() {
  if (name_.empty()) return;
  const std::lock_guard lock(registry().mutex);
  registry().groups.erase(name_);
}

GroupSum find_group(const std::string& name) {
  const std::lock_guard lock(registry().mutex);
  const auto found = registry().groups.find(name);
  TORCH_CHECK(found != registry().groups.end(),
              "group: expected the name of a registered group, got ", in_quotes(name),
              "; call register_group in this process first");
  return found->second;
}

}  // namespace translution
