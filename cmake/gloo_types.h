#pragma once

// Gloo is part of PyTorch's wheels, but its headers are not. c10d's ProcessGroupGloo.hpp includes
// them for these types, of which it holds pointers only; our code touches none. FindC10d.cmake puts
// this file in their place.
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace gloo {

class Context {
 public:
  void setTimeout(std::chrono::milliseconds);
};

namespace transport {
class Device;
class UnboundBuffer {
 public:
  virtual ~UnboundBuffer() = default;
};
}  // namespace transport

namespace rendezvous {

class Store {
 public:
  virtual ~Store() = default;
  virtual void set(const std::string&, const std::vector<char>&) = 0;
  virtual std::vector<char> get(const std::string&) = 0;
  virtual void wait(const std::vector<std::string>&) = 0;
  virtual void wait(const std::vector<std::string>&, const std::chrono::milliseconds&) = 0;
  virtual bool has_v2_support() = 0;
  virtual std::vector<std::vector<char>> multi_get(const std::vector<std::string>&) = 0;
  virtual void multi_set(const std::vector<std::string>&,
                         const std::vector<std::vector<char>>&) = 0;
  virtual void append(const std::string&, const std::vector<char>&) = 0;
  virtual int64_t add(const std::string&, int64_t) = 0;
};

}  // namespace rendezvous
}  // namespace gloo
