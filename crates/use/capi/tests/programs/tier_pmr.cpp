// Standard containers in memory larger than fast memory, and arrays as NumPy has them: a pointer, a length, and steps.
#include <isochrone.hpp>

#include <cstdio>
#include <cstdlib>
#include <functional>
#include <list>
#include <map>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

static int failed = 0;
static void want(int line, bool what) {
  if (!what) std::fprintf(stderr, "line %d: %s\n", line, isochrone_error()), failed = 1;
}
#define WANT(what) want(__LINE__, (what))

static isochrone_tier_options options(std::size_t area, std::size_t fast) {
  isochrone_tier_options of = {};
  of.area_bytes = area, of.fast_bytes = fast, of.far = ISOCHRONE_FAR_COMPRESSED;
  return of;
}

static void containers(std::pmr::memory_resource *memory) {
  std::pmr::vector<std::uint64_t> numbers(memory);
  for (std::uint64_t n = 0; n < 60000; n++) numbers.push_back(n * n);
  std::pmr::map<int, std::pmr::string> names(memory);
  for (int n = 0; n < 1000; n++) names.emplace(n * 7919 % 1009, std::string(static_cast<std::size_t>(n % 200), 'x'));
  std::pmr::list<double> some(memory);
  for (int n = 0; n < 1000; n++) some.push_front(n);
  for (std::uint64_t n = 0; n < numbers.size(); n += 37) WANT(numbers[n] == n * n);
  for (int n = 0; n < 1000; n++) WANT(names.at(n * 7919 % 1009).size() == static_cast<std::size_t>(n % 200));
  WANT(std::accumulate(some.begin(), some.end(), 0.0) == 1000.0 * 999 / 2);
}

// A matrix of doubles and its transpose by steps, as NumPy sees both in one buffer.
static void strided(const isochrone::tier_kind &kind) {
  const std::size_t rows = 300, columns = 200;
  auto *first = static_cast<double *>(isochrone_tier_kind_memalign(kind.get(), 64, rows * columns * sizeof(double)));
  WANT(first != nullptr);
  for (std::size_t at = 0; at < rows * columns; at++) first[at] = static_cast<double>(at);
  double sum = 0;
  for (std::size_t column = 0; column < columns; column++)
    for (std::size_t row = 0; row < rows; row++) sum += first[row * columns + column];
  const double all = static_cast<double>(rows * columns);
  WANT(sum == all * (all - 1) / 2);
  first = static_cast<double *>(isochrone_tier_kind_realloc(kind.get(), first, 2 * rows * columns * sizeof(double)));
  WANT(first != nullptr && first[rows * columns - 1] == all - 1);
  WANT(isochrone_tier_kind_free(kind.get(), first) == ISOCHRONE_OK);
}

// An array that a program has already, for as long as an object lives.
static void adopted() {
  const std::size_t count = std::size_t(1) << 19;
  auto *numbers = static_cast<std::uint64_t *>(std::aligned_alloc(4096, count * sizeof(std::uint64_t)));
  std::iota(numbers, numbers + count, std::uint64_t(0));
  const auto sum = [&] { return std::accumulate(numbers, numbers + count, std::uint64_t(0)); };
  const std::uint64_t wanted = std::uint64_t(count) * (count - 1) / 2;
  try {
    isochrone::tier_adopted first(numbers, count * sizeof(std::uint64_t), options(0, std::size_t(1) << 20));
    WANT(sum() == wanted);
    isochrone::tier_adopted second(std::move(first));
    second.release();
    isochrone::tier_adopted again(numbers, count * sizeof(std::uint64_t), options(0, std::size_t(1) << 20));
    WANT(sum() == wanted);
  } catch (const isochrone::error &why) {
    WANT(why.status() == ISOCHRONE_STATE);
  }
  WANT(sum() == wanted);
  std::free(numbers);
}

int main() {
  adopted();
  isochrone::tier_kind kind(options(std::size_t(8) << 20, std::size_t(1) << 19));
  isochrone::tier_resource memory(kind), same(kind);
  WANT(memory.is_equal(same) && !memory.is_equal(*std::pmr::new_delete_resource()));
  containers(&memory);
  {
    std::pmr::unsynchronized_pool_resource pool(&memory);
    containers(&pool);
  }
  std::thread other(containers, &memory), third(containers, &memory);
  other.join(), third.join();
  strided(kind);
  WANT(kind.statistics().left > 0);
  bool full = false;
  try {
    std::pmr::vector<char> too_long(std::size_t(9) << 20, &memory);
  } catch (const std::bad_alloc &) {
    full = true;
  }
  WANT(full);
  bool refused = false;
  try {
    isochrone::tier_kind second(options(std::size_t(1) << 20, std::size_t(1) << 19));
  } catch (const isochrone::error &why) {
    refused = why.status() == ISOCHRONE_ARGUMENT;
  }
  WANT(refused);
  isochrone::tier_kind moved(std::move(kind));
  WANT(kind.get() == nullptr && moved.get() != nullptr);
  return failed;
}
