/*
 * isochrone.hpp: memory near cores, tasks, and memory larger than fast memory for programs in C++17, over isochrone.h.
 *
 *   c++ -std=c++17 program.cpp $(pkg-config --cflags --libs isochrone)
 *
 *   isochrone::placement placement;
 *   isochrone::memory_resource near(placement);
 *   std::pmr::list<int> numbers(&near);
 *
 *   isochrone::tasks run;
 *   auto words = run.data<double>(8);
 *   run.spawn({words.inout()}, [](isochrone::task &self) { self.at<double>(0)[0] += 1; });
 *
 * Values free what they have when they end; what fails is thrown, but by destructors.
 * What a function does, and its units, is said in isochrone.h.
 */
#ifndef ISOCHRONE_HPP
#define ISOCHRONE_HPP

#include <isochrone.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <initializer_list>
#include <memory>
#include <memory_resource>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

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

/* ---- tasks, and memory larger than fast memory ---- */

/* What a task does to a range. */
enum class mode : std::uint32_t {
  in = ISOCHRONE_IN,
  out = ISOCHRONE_OUT,
  inout = ISOCHRONE_INOUT,
  commutative = ISOCHRONE_COMMUTATIVE,
  reduce_sum = ISOCHRONE_REDUCE_SUM,
  reduce_min = ISOCHRONE_REDUCE_MIN,
  reduce_max = ISOCHRONE_REDUCE_MAX
};

/* An array of a run, or a part of one: a name, which may be copied anywhere. */
template <class T> class part {
  static_assert(std::is_trivially_copyable<T>::value, "data are plain values");

public:
  part() = default;
  part(std::uint32_t data, std::size_t first, std::size_t count) : data_(data), first_(first), count_(count) {}

  std::uint32_t data() const noexcept { return data_; }
  std::size_t first() const noexcept { return first_; }
  std::size_t size() const noexcept { return count_; }

  /* Elements of this part. */
  part sub(std::size_t first, std::size_t count) const { return part(data_, first_ + first, count); }

  isochrone_range range(mode how) const {
    return {data_, static_cast<std::uint32_t>(how), first_ * sizeof(T), count_ * sizeof(T)};
  }
  isochrone_range in() const { return range(mode::in); }
  isochrone_range out() const { return written(mode::out); }
  isochrone_range inout() const { return written(mode::inout); }
  isochrone_range commutative() const { return written(mode::commutative); }

private:
  isochrone_range written(mode how) const {
    static_assert(!std::is_const<T>::value, "an array of constants is only read");
    return range(how);
  }

  std::uint32_t data_ = 0;
  std::size_t first_ = 0, count_ = 0;
};

/* What may be said of a task beside its ranges. */
struct how {
  const char *name = nullptr; /* in traces and errors */
  std::int32_t priority = 0;
};

/* What a task uses: a list in braces, or as many ranges as the program has in an array of its own. */
class ranges {
public:
  ranges() = default;
  ranges(std::initializer_list<isochrone_range> all) noexcept { set(all.begin(), all.size()); }
  ranges(const std::vector<isochrone_range> &all) noexcept { set(all.data(), all.size()); }
  ranges(const isochrone_range *first, std::size_t count) noexcept { set(first, count); }

  const isochrone_range *begin() const noexcept { return first_; }
  std::size_t size() const noexcept { return count_; }

private:
  void set(const isochrone_range *first, std::size_t count) noexcept { first_ = first, count_ = count; }

  const isochrone_range *first_ = nullptr;
  std::size_t count_ = 0;
};
class task;

namespace detail {

template <class F> int call(F &function, task &self);

/* A function object as a task's arguments: itself where it is small and plain, or one pointer to it. */
template <class F> struct body {
  static constexpr bool is_plain = std::is_trivially_copyable<F>::value && sizeof(F) <= 40 && alignof(F) <= 64;

  static int run(isochrone_task *self, const void *arguments, void *const *addresses) noexcept;
  static void end(void *arguments) { delete *static_cast<F **>(arguments); }

  /* The copy that a task was given; its function alone has it. */
  static F &function(const void *arguments) noexcept {
    if constexpr (is_plain)
      return *static_cast<F *>(const_cast<void *>(arguments));
    else
      return **static_cast<F *const *>(arguments);
  }

  /* Submits it to a run, or to a task. */
  template <class Submit> static isochrone_handle submit(F function, ranges uses, const how &said, Submit &&enter) {
    isochrone_submission submission = {};
    submission.size = sizeof submission;
    submission.function = &body::run;
    submission.name = said.name;
    submission.priority = said.priority;
    submission.ranges = uses.begin();
    submission.count = uses.size();
    isochrone_handle handle = {};
    if constexpr (is_plain) {
      submission.arguments = std::addressof(function);
      submission.bytes = sizeof function;
      check(enter(&submission, &handle));
    } else {
      auto own = std::make_unique<F>(std::move(function));
      F *pointer = own.get();
      submission.arguments = &pointer;
      submission.bytes = sizeof pointer;
      submission.discard = &body::end;
      check(enter(&submission, &handle));
      own.release();
    }
    return handle;
  }
};

} // namespace detail

/* A task that runs, inside of its function. */
class task {
public:
  task(isochrone_task *self, void *const *addresses) noexcept : self_(self), addresses_(addresses) {}
  task(const task &) = delete;
  task &operator=(const task &) = delete;

  /* Where its range number `at` is, in the order of registration. */
  template <class T> T *at(std::size_t at) const noexcept { return static_cast<T *>(addresses_[at]); }

  /* Its own values for a range that it reduces; once for each range. */
  std::int64_t *reduce_int64(std::size_t at) { return static_cast<std::int64_t *>(own(at, ISOCHRONE_INT64)); }
  double *reduce_double(std::size_t at) { return static_cast<double *>(own(at, ISOCHRONE_DOUBLE)); }

  /* A task of its own. */
  template <class F> isochrone_handle spawn(ranges uses, F &&function, const how &said = {}) {
    using body = detail::body<std::decay_t<F>>;
    return body::submit(std::forward<F>(function), uses, said, [this](auto *submission, auto *handle) {
      return isochrone_task_submit(self_, submission, handle);
    });
  }
  void wait() { check(isochrone_task_wait(self_)); }
  void wait(isochrone_handle other) { check(isochrone_task_wait_for(self_, other)); }

  void cancel() { check(isochrone_task_cancel(self_)); }
  bool is_in_vain() const noexcept { return isochrone_task_is_in_vain(self_) != 0; }
  std::uint32_t worker() const noexcept { return isochrone_task_worker(self_); }
  isochrone_task *get() const noexcept { return self_; }

private:
  void *own(std::size_t at, std::uint32_t element) {
    void *first = nullptr;
    check(isochrone_task_reduce(self_, at, element, &first));
    return first;
  }

  isochrone_task *self_;
  void *const *addresses_;
};

namespace detail {

template <class F> int call(F &function, task &self) {
  if constexpr (std::is_invocable<F &, task &>::value)
    function(self);
  else
    function();
  return 0;
}

template <class F>
int body<F>::run(isochrone_task *self, const void *arguments, void *const *addresses) noexcept {
  task now(self, addresses);
  try {
    return call(function(arguments), now);
  } catch (const std::exception &caught) {
    return isochrone_task_fail(self, caught.what());
  } catch (...) {
    return isochrone_task_fail(self, "it threw something that is no std::exception");
  }
}

} // namespace detail

/* A run of tasks on threads. The thread that made it is its first worker, and alone uses it. */
class tasks {
public:
  explicit tasks(std::uint32_t workers = 0) {
    isochrone_tasks_options options = {};
    options.size = sizeof options;
    options.workers = workers;
    start(options);
  }
  /* `options.size` is set here. */
  explicit tasks(isochrone_tasks_options options) {
    options.size = sizeof options;
    start(options);
  }
  tasks(tasks &&other) noexcept : run_(std::exchange(other.run_, nullptr)) {}
  tasks &operator=(tasks &&other) noexcept {
    std::swap(run_, other.run_);
    return *this;
  }
  ~tasks() { isochrone_tasks_end(run_); }

  /* Waits for all tasks and ends the run; throws what failed that no call has said. */
  void end() { check(isochrone_tasks_end(std::exchange(run_, nullptr))); }

  std::uint32_t workers() const noexcept { return isochrone_tasks_workers(run_); }

  /* An array of zeros; and one that the program has already, which tasks only read where its elements are constants. */
  template <class T> part<T> data(std::size_t count) {
    std::uint32_t number = 0;
    check(isochrone_tasks_data(run_, count * sizeof(T), &number));
    return part<T>(number, 0, count);
  }
  template <class T> part<T> adopt(T *first, std::size_t count) {
    std::uint32_t number = 0;
    check(isochrone_tasks_adopt(run_, const_cast<std::remove_const_t<T> *>(first), count * sizeof(T), &number));
    return part<T>(number, 0, count);
  }
  template <class T> part<T> adopt(std::vector<T> &all) { return adopt(all.data(), all.size()); }
  template <class T> part<const T> adopt(const std::vector<T> &all) { return adopt(all.data(), all.size()); }
  template <class T> void free(part<T> all) { check(isochrone_tasks_free(run_, all.data())); }

  /* Registers a task: `function` takes an isochrone::task &, or nothing. What it throws is how it fails. */
  template <class F> isochrone_handle spawn(ranges uses, F &&function, const how &said = {}) {
    using body = detail::body<std::decay_t<F>>;
    return body::submit(std::forward<F>(function), uses, said, [this](auto *submission, auto *handle) {
      return isochrone_tasks_submit(run_, submission, handle);
    });
  }

  void wait() { check(isochrone_tasks_wait(run_)); }
  void wait(isochrone_handle task) { check(isochrone_tasks_wait_for(run_, task)); }
  /* By any thread, as long as the object lives and is not moved. */
  void cancel() { check(isochrone_tasks_cancel(run_)); }

  /* Elements to read, or to read and write, when the tasks are over that write, or use, them. */
  template <class T> const T *read(part<T> some) {
    const void *first = nullptr;
    check(isochrone_tasks_read(run_, some.data(), some.first() * sizeof(T), some.size() * sizeof(T), &first));
    return static_cast<const T *>(first);
  }
  template <class T> T *write(part<T> some) {
    void *first = nullptr;
    check(isochrone_tasks_write(run_, some.data(), some.first() * sizeof(T), some.size() * sizeof(T), &first));
    return static_cast<T *>(first);
  }

  /* For chrome://tracing and Perfetto, of a run that was started with ISOCHRONE_TASKS_TRACED. */
  void trace(const std::string &path) { check(isochrone_tasks_trace(run_, path.c_str())); }
  isochrone_tasks *get() const noexcept { return run_; }

private:
  void start(const isochrone_tasks_options &options) { check(isochrone_tasks_start(&options, nullptr, 0, &run_)); }

  isochrone_tasks *run_ = nullptr;
};

/* One large array of which a part is in fast memory, for all threads. */
template <class T> class tier_array {
  static_assert(std::is_trivially_copyable<T>::value, "pages come and go as bytes");

public:
  tier_array(std::size_t count, isochrone_tier_options options) : count_(count) {
    void *first = nullptr;
    options.size = sizeof options;
    options.area_bytes = count * sizeof(T);
    check(isochrone_tier_map(&options, &array_, &first));
    first_ = static_cast<T *>(first);
  }
  tier_array(const tier_array &) = delete;
  tier_array &operator=(const tier_array &) = delete;
  ~tier_array() { isochrone_tier_unmap(array_); }

  T *data() const noexcept { return first_; }
  std::size_t size() const noexcept { return count_; }
  T *begin() const noexcept { return first_; }
  T *end() const noexcept { return first_ + count_; }
  T &operator[](std::size_t at) const noexcept { return first_[at]; }

  void pin(std::size_t first, std::size_t count) const {
    check(isochrone_tier_array_pin(array_, first_ + first, count * sizeof(T)));
  }
  void unpin(std::size_t first, std::size_t count) const {
    check(isochrone_tier_array_unpin(array_, first_ + first, count * sizeof(T)));
  }
  isochrone_tier_statistics statistics() const {
    isochrone_tier_statistics counts = {};
    counts.size = sizeof counts;
    check(isochrone_tier_array_count(array_, &counts));
    return counts;
  }

private:
  isochrone_tier_array *array_ = nullptr;
  T *first_ = nullptr;
  std::size_t count_;
};

/* Objects of any size in memory of which a part is in fast memory, for all threads. It ends with all of them. */
class tier_kind {
public:
  explicit tier_kind(isochrone_tier_options options) {
    options.size = sizeof options;
    check(isochrone_tier_kind_create(&options, &kind_));
  }
  tier_kind(tier_kind &&other) noexcept : kind_(std::exchange(other.kind_, nullptr)) {}
  tier_kind &operator=(tier_kind &&other) noexcept {
    std::swap(kind_, other.kind_);
    return *this;
  }
  ~tier_kind() { isochrone_tier_kind_destroy(kind_); }

  isochrone_tier_statistics statistics() const {
    isochrone_tier_statistics counts = {};
    counts.size = sizeof counts;
    check(isochrone_tier_array_count(isochrone_tier_kind_array(kind_), &counts));
    return counts;
  }
  isochrone_tier_kind *get() const noexcept { return kind_; }

private:
  isochrone_tier_kind *kind_ = nullptr;
};

/* The same for standard containers. The kind outlives it and all that it allocated. Objects that are freed wrongly end
   the program. For many small objects put a std::pmr::unsynchronized_pool_resource in front of it. */
class tier_resource : public std::pmr::memory_resource {
public:
  explicit tier_resource(const tier_kind &of) noexcept : kind_(of.get()) {}

private:
  void *do_allocate(std::size_t bytes, std::size_t alignment) override {
    void *at = isochrone_tier_kind_memalign(kind_, alignment, bytes);
    if (at == nullptr) throw std::bad_alloc();
    return at;
  }

  void do_deallocate(void *at, std::size_t, std::size_t) override {
    if (isochrone_tier_kind_free(kind_, at) != ISOCHRONE_OK) std::abort();
  }

  bool do_is_equal(const std::pmr::memory_resource &other) const noexcept override {
    const auto *same = dynamic_cast<const tier_resource *>(&other);
    return same != nullptr && same->kind_ == kind_;
  }

  isochrone_tier_kind *kind_;
};

/* Memory that the program has already, of which a part is in fast memory as long as the object lives. Its pages are
   whole, and it outlives the object. Where they cannot be brought back at its end the program ends; release() throws. */
class tier_adopted {
public:
  tier_adopted(void *at, std::size_t bytes, isochrone_tier_options options) {
    options.size = sizeof options;
    check(isochrone_tier_adopt(&options, at, bytes));
    at_ = at;
  }
  tier_adopted(tier_adopted &&other) noexcept : at_(std::exchange(other.at_, nullptr)) {}
  tier_adopted &operator=(tier_adopted &&other) noexcept {
    std::swap(at_, other.at_);
    return *this;
  }
  ~tier_adopted() {
    if (at_ != nullptr && isochrone_tier_release(at_) != ISOCHRONE_OK) std::abort();
  }

  void release() {
    if (at_ != nullptr) check(isochrone_tier_release(at_));
    at_ = nullptr;
  }

private:
  void *at_ = nullptr;
};

} // namespace isochrone

#endif
