/*
 * UMap (https://github.com/LLNL/umap) with a store in memory, for `isochrone bench tier --peer umap=PATH`.
 *
 *   g++ -O3 -shared -fPIC umap.cpp -I UMAP/include -L UMAP/lib -lumap -Wl,-rpath,UMAP/lib -o libumap-peer.so
 *   isochrone bench tier --only peers --peer umap=$PWD/libumap-peer.so
 *
 * What the benchmark sets: UMAP_PAGESIZE (that of its own groups, unless it is set already) and UMAP_BUFSIZE (pages
 * of that size that may be in fast memory). The stencil that runs on the memory is the benchmark's own.
 */
#include <umap/store/Store.hpp>
#include <umap/umap.h>

#include <cstring>
#include <sys/mman.h>

namespace {

/* What is not in fast memory: other memory, taken as it is written. */
class Memory : public Umap::Store {
  char *first_;

public:
  explicit Memory(char *first) : first_{first} {}

  ssize_t read_from_store(char *to, std::size_t bytes, off_t at) override {
    std::memcpy(to, first_ + at, bytes);
    return static_cast<ssize_t>(bytes);
  }

  ssize_t write_to_store(char *from, std::size_t bytes, off_t at) override {
    std::memcpy(first_ + at, from, bytes);
    return static_cast<ssize_t>(bytes);
  }
};

} // namespace

/* Memory of zeros that UMap pages, or null. It stays until the process ends. */
extern "C" void *isochrone_map(std::size_t bytes) {
  const int access = PROT_READ | PROT_WRITE;
  void *store = mmap(nullptr, bytes, access, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (store == MAP_FAILED) return nullptr;
  void *region = Umap::umap_ex(nullptr, bytes, access, UMAP_PRIVATE, -1, 0, new Memory{static_cast<char *>(store)});
  return region == UMAP_FAILED ? nullptr : region;
}
