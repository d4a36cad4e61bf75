/*
 * Tasks and a large array by isochrone.hpp: blocks of a matrix that the program has already are factorised in place
 * (LU without pivots), by lambdas that wait for one another by the blocks that they use.
 *
 *   c++ -std=c++17 -pthread wrapped.cpp $(pkg-config --cflags --libs isochrone) -o wrapped
 *   ./wrapped 2 trace.json
 *
 * The same with OpenMP says `#pragma omp task depend(in: a[0:n]) depend(inout: b[0:n])` where this says
 * `run.spawn({a.in(), b.inout()}, [=](auto &) { ... })`. Prints one line and ends with 0 if all is as it should be.
 */
#include <isochrone.hpp>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

namespace {

constexpr std::size_t BLOCKS = 6, SIDE = 16, BLOCK = SIDE * SIDE;

void factorise(double *a) {
  for (std::size_t k = 0; k < SIDE; k++)
    for (std::size_t i = k + 1; i < SIDE; i++) {
      a[i * SIDE + k] /= a[k * SIDE + k];
      for (std::size_t j = k + 1; j < SIDE; j++) a[i * SIDE + j] -= a[i * SIDE + k] * a[k * SIDE + j];
    }
}

void lower(const double *diagonal, double *a) {
  for (std::size_t k = 0; k < SIDE; k++)
    for (std::size_t i = k + 1; i < SIDE; i++)
      for (std::size_t j = 0; j < SIDE; j++) a[i * SIDE + j] -= diagonal[i * SIDE + k] * a[k * SIDE + j];
}

void upper(const double *diagonal, double *a) {
  for (std::size_t i = 0; i < SIDE; i++)
    for (std::size_t k = 0; k < SIDE; k++) {
      a[i * SIDE + k] /= diagonal[k * SIDE + k];
      for (std::size_t j = k + 1; j < SIDE; j++) a[i * SIDE + j] -= a[i * SIDE + k] * diagonal[k * SIDE + j];
    }
}

void update(const double *left, const double *above, double *a) {
  for (std::size_t i = 0; i < SIDE; i++)
    for (std::size_t k = 0; k < SIDE; k++)
      for (std::size_t j = 0; j < SIDE; j++) a[i * SIDE + j] -= left[i * SIDE + k] * above[k * SIDE + j];
}

std::vector<double> matrix() {
  std::vector<double> all(BLOCKS * BLOCKS * BLOCK);
  for (std::size_t at = 0; at < all.size(); at++) all[at] = static_cast<double>(at * 7919 % 1009) / 1009;
  for (std::size_t block = 0; block < BLOCKS; block++)
    for (std::size_t i = 0; i < SIDE; i++) all[(block * BLOCKS + block) * BLOCK + i * SIDE + i] += 2 * BLOCKS * SIDE;
  return all;
}

/* All steps in order. `step` gets what each does, with the blocks that it uses. */
template <class Step> void factorisation(Step &&step) {
  for (std::size_t k = 0; k < BLOCKS; k++) {
    step("factorise", k, k, k, k, k, k);
    for (std::size_t i = k + 1; i < BLOCKS; i++) {
      step("lower", k, k, k, k, k, i);
      step("upper", k, k, k, k, i, k);
    }
    for (std::size_t i = k + 1; i < BLOCKS; i++)
      for (std::size_t j = k + 1; j < BLOCKS; j++) step("update", i, k, k, j, i, j);
  }
}

void apply(const std::string &what, const double *a, const double *b, double *c) {
  if (what == "factorise") factorise(c);
  if (what == "lower") lower(a, c);
  if (what == "upper") upper(a, c);
  if (what == "update") update(a, b, c);
}

int run(std::uint32_t workers, const char *trace) {
  std::vector<double> serial = matrix(), ours = matrix();
  factorisation([&](const char *what, auto ai, auto aj, auto bi, auto bj, auto ci, auto cj) {
    auto block = [&](auto i, auto j) { return &serial[(i * BLOCKS + j) * BLOCK]; };
    apply(what, block(ai, aj), block(bi, bj), block(ci, cj));
  });

  isochrone_tasks_options options = {};
  options.size = sizeof options;
  options.workers = workers;
  options.flags = trace ? ISOCHRONE_TASKS_TRACED : 0;
  isochrone::tasks tasks(options);
  auto all = tasks.adopt(ours);
  factorisation([&](const char *what, auto ai, auto aj, auto bi, auto bj, auto ci, auto cj) {
    auto block = [&](auto i, auto j) { return all.sub((i * BLOCKS + j) * BLOCK, BLOCK); };
    auto a = block(ai, aj), b = block(bi, bj), c = block(ci, cj);
    isochrone::how how;
    how.name = what;
    how.priority = ai == ci && aj == cj ? 1 : 0;
    std::string name = what;
    if (name == "factorise")
      tasks.spawn({c.inout()}, [](isochrone::task &self) { factorise(self.at<double>(0)); }, how);
    else
      tasks.spawn({a.in(), b.in(), c.inout()}, [name](isochrone::task &self) {
        apply(name, self.at<double>(0), self.at<double>(1), self.at<double>(2));
      }, how);
  });
  tasks.wait();
  if (trace) tasks.trace(trace);
  if (ours != serial) return 2;

  /* A task that throws fails; what it should have written stays failed until somebody writes it anew. */
  auto sum = tasks.data<double>(1);
  auto failing = tasks.spawn({sum.inout()}, [] { throw std::runtime_error("no more oil"); });
  try {
    tasks.wait(failing);
    return 3;
  } catch (const isochrone::error &caught) {
    if (caught.status() != ISOCHRONE_FAILED || std::string(caught.what()).find("no more oil") == std::string::npos)
      return 4;
  }
  tasks.spawn({sum.out()}, [](isochrone::task &self) {
    *self.at<double>(0) = 0;
  });
  tasks.spawn({sum.inout()}, [sum](isochrone::task &self) {
    for (int i = 0; i < 10; i++)
      self.spawn({sum.inout()}, [](isochrone::task &own) { *own.at<double>(0) += 1; });
    self.wait();
  });
  if (*tasks.read(sum) != 10) return 5;
  tasks.end();

  isochrone_tier_options far = {};
  far.fast_bytes = 16 * 4096;
  far.far = ISOCHRONE_FAR_COMPRESSED;
  isochrone::tier_array<std::uint64_t> large(64 * 512, far);
  for (std::size_t at = 0; at < large.size(); at++) large[at] = at;
  std::uint64_t total = 0;
  for (std::uint64_t value : large) total += value;
  if (total != static_cast<std::uint64_t>(64 * 512) * (64 * 512 - 1) / 2) return 6;
  if (large.statistics().left == 0) return 7;
  std::printf("libisochrone %s: %u workers, every bit as in order\n", isochrone_version(), workers);
  return 0;
}

} // namespace

int main(int count, char **arguments) {
  try {
    return run(count > 1 ? static_cast<std::uint32_t>(std::strtoul(arguments[1], nullptr, 10)) : 2,
               count > 2 ? arguments[2] : nullptr);
  } catch (const std::exception &caught) {
    std::fprintf(stderr, "%s\n", caught.what());
    return 1;
  }
}
