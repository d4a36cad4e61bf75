/*
 * isochrone.hpp: memory near cores for programs in C++17, over isochrone.h.
 *
 *   c++ -std=c++17 program.cpp $(pkg-config --cflags --libs isochrone)
 *
 *   isochrone::placement placement;
 *   isochrone::memory_resource near(placement);
 *   std::pmr::list<int> numbers(&near);
 *
 * What a function does, and its units, is said in isochrone.h.
 */
#ifndef ISOCHRONE_HPP
#define ISOCHRONE_HPP

#include <isochrone.h>

#include <cstdint>
#include <cstdlib>
#include <memory_resource>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

namespace isochrone {

/* A call that was refused, with its words. */
class error : public std::runtime_error {
public:
  explicit error(int status) : std::runtime_error(isochrone_error()), status_(status) {}
  /* ISOCHRONE_ARGUMENT, ... */
  int status() const noexcept { return status_; }

private:
  int status_;
};

inline void check(int status) {
  if (status != ISOCHRONE_OK) throw error(status);
}

/* A placement that is open. It closes with its object, which must outlive all memory of it. */
class placement {
public:
  placement() { check(isochrone_place_open(nullptr, &handle_)); }

  /* `options.size` is set here. */
  explicit placement(isochrone_place_options options) {
    options.size = sizeof options;
    check(isochrone_place_open(&options, &handle_));
  }

  placement(placement &&other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  placement &operator=(placement &&other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  placement(const placement &) = delete;
  placement &operator=(const placement &) = delete;
  ~placement() { isochrone_place_close(handle_); }

  /* Why nothing is placed; nothing where something is. */
  std::optional<std::string> why_not() const {
    const char *why = isochrone_place_why_not(handle_);
    return why == nullptr ? std::nullopt : std::optional<std::string>(why);
  }

  /* The share of the memory for so many bytes that was learnt, in `seconds` at most unless that is 0. */
  double prepare(std::size_t bytes, double seconds = 0) {
    double learnt = 0;
    check(isochrone_place_prepare(handle_, bytes, seconds, &learnt));
    return learnt;
  }

  /* How far an object is from a core, ns; nothing for memory that was not placed. */
  std::optional<isochrone_place_distances> distance(const void *at, std::uint32_t core) const {
    isochrone_place_distances distances;
    if (isochrone_place_distance(handle_, at, core, &distances) != ISOCHRONE_OK) return std::nullopt;
    return distances;
  }

  isochrone_place_counts statistics() const {
    isochrone_place_counts counts = {};
    counts.size = sizeof counts;
    check(isochrone_place_statistics(handle_, &counts));
    return counts;
  }

  isochrone_placement *handle() const noexcept { return handle_; }

private:
  isochrone_placement *handle_ = nullptr;
};

/* Memory for standard containers: near the core of each thread that asks, or near one core. The placement outlives it.
   Objects that are freed wrongly end the program. */
class memory_resource : public std::pmr::memory_resource {
public:
  explicit memory_resource(placement &of) noexcept : handle_(of.handle()) {}
  memory_resource(placement &of, std::uint32_t core) noexcept : handle_(of.handle()), core_(core) {}

private:
  void *do_allocate(std::size_t bytes, std::size_t alignment) override {
    void *at = core_ ? isochrone_place_alloc_near(handle_, *core_, bytes, alignment)
                     : isochrone_place_alloc(handle_, bytes, alignment);
    if (at == nullptr) throw std::bad_alloc();
    return at;
  }

  void do_deallocate(void *at, std::size_t, std::size_t) override {
    if (isochrone_place_free(handle_, at) != ISOCHRONE_OK) std::abort();
  }

  /* What one allocates, the other may free, whatever core they are for. */
  bool do_is_equal(const std::pmr::memory_resource &other) const noexcept override {
    const auto *same = dynamic_cast<const memory_resource *>(&other);
    return same != nullptr && same->handle_ == handle_;
  }

  isochrone_placement *handle_;
  std::optional<std::uint32_t> core_;
};

} // namespace isochrone

#endif
