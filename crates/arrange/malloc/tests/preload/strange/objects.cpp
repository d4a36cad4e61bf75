// What C++ does by itself: operators new that call malloc, aligned ones and sized ones, exceptions that come and go
// between threads, containers in a resource, thread-local objects with destructors. Prints a sum.
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <map>
#include <memory>
#include <memory_resource>
#include <new>
#include <string>
#include <thread>
#include <vector>

static std::atomic<long> made, gone;

void *operator new(std::size_t size) {
  made++;
  if (void *found = std::malloc(size ? size : 1)) return found;
  throw std::bad_alloc();
}
void *operator new(std::size_t size, std::align_val_t align) {
  made++;
  void *found = nullptr;
  if (posix_memalign(&found, static_cast<std::size_t>(align), size)) throw std::bad_alloc();
  return found;
}
void operator delete(void *old) noexcept { gone += old != nullptr, std::free(old); }
void operator delete(void *old, std::size_t) noexcept { gone += old != nullptr, std::free(old); }
void operator delete(void *old, std::align_val_t) noexcept { gone += old != nullptr, std::free(old); }
void operator delete(void *old, std::size_t, std::align_val_t) noexcept { gone += old != nullptr, std::free(old); }

struct alignas(64) Line {
  long words[8];
};
struct alignas(128) Lines {
  long words[16];
};
struct Ends {
  std::vector<std::string> all;
  ~Ends() {
    for (auto &one : all) one += " and a text that is too long for the object itself";
    all.clear();
  }
};
static thread_local Ends ends;

static long deep(int depth, int seed) {
  std::string text(static_cast<std::size_t>(20 + (depth * 37 + seed) % 200), 'x');
  if (depth == 0) throw std::runtime_error(text);
  auto line = std::make_unique<Line>();
  line->words[0] = deep(depth - 1, seed);
  return line->words[0];
}

static long works(int seed) {
  long sum = 0;
  std::map<int, std::shared_ptr<Lines>> lines;
  std::pmr::unsynchronized_pool_resource pool;
  std::pmr::map<int, std::pmr::string> names(&pool);
  std::exception_ptr kept;
  for (int step = 0; step < 4000; step++) {
    auto one = std::make_shared<Lines>();
    if (reinterpret_cast<std::uintptr_t>(one.get()) % 128) std::abort();
    one->words[3] = step;
    lines[step * 7919 % 500] = one;
    names.emplace(step, "a name of some length, number " + std::to_string(step));
    if (step % 5 == 0) names.erase(step / 2);
    try {
      sum += deep(step % 12, seed);
    } catch (const std::exception &error) {
      sum += static_cast<long>(std::string(error.what()).size());
      if (step % 100 == 0) kept = std::current_exception();
    }
    if (step % 40 == 0) ends.all.push_back("left to the end of the thread, number " + std::to_string(step));
  }
  for (auto &[key, value] : lines) sum += key + value->words[3];
  try {
    std::rethrow_exception(kept);
  } catch (const std::exception &error) {
    sum += error.what()[0];
  }
  return sum + static_cast<long>(names.size());
}

int main() {
  std::vector<long> sums(6);
  for (int round = 0; round < 3; round++) {
    std::vector<std::thread> threads;
    for (int i = 0; i < 6; i++) threads.emplace_back([&sums, i] { sums[static_cast<std::size_t>(i)] += works(i); });
    for (auto &thread : threads) thread.join();
  }
  long sum = 0;
  for (long one : sums) sum += one;
  std::printf("%ld, %s\n", sum, made >= gone && gone > 100000 ? "all went through the operators" : "some did not");
}
