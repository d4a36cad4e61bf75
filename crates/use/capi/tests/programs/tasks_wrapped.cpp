// What C++ does with a run beside the example: exceptions of every kind, function objects small and large, arrays of
// constants, ranges in a vector, cancelling from another thread.
#include <isochrone.hpp>

#include <array>
#include <atomic>
#include <cstdio>
#include <functional>
#include <memory>
#include <new>
#include <numeric>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace {

int failed = 0;

void want(bool is, const char *what, int line) {
  if (!is) std::fprintf(stderr, "line %d: not so: %s\n", line, what), failed = 1;
}
#define WANT(condition) want((condition), #condition, __LINE__)

// What a call throws: its number and words.
template <class F> std::pair<int, std::string> thrown(F &&call) {
  try {
    call();
  } catch (const isochrone::error &caught) {
    return {caught.status(), caught.what()};
  }
  return {ISOCHRONE_OK, ""};
}

bool has(const std::pair<int, std::string> &found, int status, const char *words) {
  return found.first == status && found.second.find(words) != std::string::npos;
}

void exceptions(isochrone::tasks &run) {
  auto one = run.data<int>(1);
  auto handle = run.spawn({one.inout()}, [] { throw 42; });
  WANT(has(thrown([&] { run.wait(handle); }), ISOCHRONE_FAILED, "no std::exception"));
  run.spawn({one.out()}, [](isochrone::task &self) {
    self.spawn({}, [] { throw std::runtime_error("of its own"); });
  });
  WANT(has(thrown([&] { run.wait(); }), ISOCHRONE_FAILED, "of its own"));
  // Who waits inside is told, and may do without.
  run.spawn({one.out()}, [](isochrone::task &self) {
    auto own = self.spawn({}, [] { throw std::runtime_error("of its own"); });
    WANT(has(thrown([&] { self.wait(own); }), ISOCHRONE_FAILED, "of its own"));
    *self.at<int>(0) = 7;
  });
  WANT(*run.read(one) == 7);

  struct refuses {
    refuses() = default;
    refuses(const refuses &) { throw std::bad_alloc(); }
    refuses(refuses &&) = default;
    void operator()() const {}
  } copied;
  bool passed = false;
  try {
    run.spawn({}, copied);
  } catch (const std::bad_alloc &) {
    passed = true;
  }
  WANT(passed);
  // Refused, so that nothing runs, and what it owns ends once.
  auto owned = std::make_shared<int>(1);
  isochrone::part<int> unknown(77, 0, 1);
  WANT(has(thrown([&] { run.spawn({unknown.in()}, [owned] {}); }), ISOCHRONE_ARGUMENT, "77"));
  WANT(owned.use_count() == 1);
}

void functions(isochrone::tasks &run) {
  std::atomic<int> sum{0};
  // Plain ones of every size around what lies in a task, some that own, and some that change themselves.
  auto add = [&](auto many) {
    run.spawn({}, [&sum, many]() mutable {
      many[0] += 1;
      sum += std::accumulate(many.begin(), many.end(), -1);
    });
  };
  int wanted = 0;
  auto fill = [&](auto many) {
    many.fill(1);
    wanted += static_cast<int>(many.size());
    for (int i = 0; i < 100; i++) add(many);
  };
  fill(std::array<int, 1>{}), fill(std::array<int, 7>{}), fill(std::array<int, 8>{});
  fill(std::array<int, 9>{}), fill(std::array<int, 100>{});
  auto only = std::make_unique<int>(5);
  run.spawn({}, [&sum, only = std::move(only)] { sum += *only; });
  auto shared = std::make_shared<int>(6);
  std::function<void(isochrone::task &)> any = [&sum, shared](isochrone::task &) { sum += *shared; };
  run.spawn({}, any);
  run.wait();
  WANT(sum == 100 * wanted + 11);
  any = nullptr;
  WANT(shared.use_count() == 1);
}

void arrays(isochrone::tasks &run) {
  const std::vector<double> given(1000, 2.0);
  std::vector<double> sums(10);
  auto from = run.adopt(given);
  auto to = run.adopt(sums);
  static_assert(std::is_same<decltype(from), isochrone::part<const double>>::value, "it is only read");
  for (std::size_t i = 0; i < 10; i++) {
    // As many as it takes.
    std::vector<isochrone_range> uses{to.sub(i, 1).out()};
    for (std::size_t j = 0; j <= i; j++) uses.push_back(from.sub(j * 100, 100).in());
    run.spawn(uses, [i](isochrone::task &self) {
      for (std::size_t j = 0; j <= i; j++) {
        auto *first = self.at<const double>(j + 1);
        *self.at<double>(0) += std::accumulate(first, first + 100, 0.0);
      }
    });
  }
  run.spawn(isochrone::ranges(nullptr, 0), [] {});
  run.wait();
  for (std::size_t i = 0; i < 10; i++) WANT(sums[i] == 200.0 * static_cast<double>(i + 1));
  WANT(*run.read(from.sub(999, 1)) == 2.0);
  WANT(has(thrown([&] { run.adopt(given); }), ISOCHRONE_ARGUMENT, "already"));
  run.free(from);
  run.free(to);
}

void from_beside(isochrone::tasks &run) {
  std::atomic<int> begun{0}, rest{0};
  auto word = run.data<int>(1);
  run.spawn({word.inout()}, [&](isochrone::task &self) {
    begun = 1;
    while (!self.is_in_vain()) std::this_thread::yield();
  });
  for (int i = 0; i < 100; i++) run.spawn({word.inout()}, [&] { rest++; });
  std::thread asks([&] {
    while (begun == 0) std::this_thread::yield();
    WANT(has(thrown([&] { run.wait(); }), ISOCHRONE_STATE, "the thread that started it"));
    run.cancel();
  });
  WANT(has(thrown([&] { run.wait(); }), ISOCHRONE_CANCELLED, "cancelled"));
  asks.join();
  WANT(rest == 0);
}

} // namespace

int main() {
  isochrone_tasks_options options = {};
  options.workers = 2;
  isochrone::tasks run(options);
  exceptions(run);
  functions(run);
  arrays(run);
  from_beside(run);
  isochrone::tasks moved(std::move(run));
  WANT(has(thrown([&] { run.wait(); }), ISOCHRONE_ARGUMENT, "null"));
  moved.spawn({}, [] { throw std::runtime_error("at the end"); });
  WANT(has(thrown([&] { moved.end(); }), ISOCHRONE_FAILED, "at the end"));
  moved.end();
  try {
    isochrone::tasks unwound(options);
    unwound.spawn({}, [] { throw std::runtime_error("nobody hears it"); });
    throw std::logic_error("on the way out");
  } catch (const std::logic_error &) {
  }
  return failed;
}
