// oneTBB: a flow graph of continue_nodes, whose making counts, as registering does elsewhere. Its nodes know
// no memory, so the edges that follow from cells written over are drawn here.
#include "common.h"

#include <memory>
#include <vector>

#include <tbb/flow_graph.h>
#include <tbb/global_control.h>
#include <tbb/task_arena.h>
#include <tbb/task_group.h>

using tbb::flow::continue_msg;
using Node = tbb::flow::continue_node<continue_msg>;

static std::unique_ptr<tbb::global_control> control;
static count counts[MOST_THREADS];
static int workers;

void begin(int n) {
  workers = n;
  control.reset(new tbb::global_control(tbb::global_control::max_allowed_parallelism, (size_t)n));
}

void end(void) { control.reset(); }

void run_graph(const graph *g) {
  tbb::flow::graph flow;
  std::vector<std::unique_ptr<Node>> nodes((size_t)g->steps * (size_t)g->width);
  auto at = [&](int step, int point) -> Node & {
    return *nodes[(size_t)step * (size_t)g->width + (size_t)point];
  };
  std::vector<Node *> first;
  std::vector<std::vector<int>> readers((size_t)g->width);
  for (int step = 0; step < g->steps; step++) {
    // Who reads, in the step before, the cells that this step writes over.
    for (auto &list : readers) list.clear();
    for (int point = 0; step > 1 && point < g->width; point++) {
      int b[MOST_BEFORE], n = before(g, step - 1, point, b);
      for (int i = 0; i < n; i++) readers[(size_t)b[i]].push_back(point);
    }
    for (int point = 0; point < g->width; point++) {
      nodes[(size_t)step * (size_t)g->width + (size_t)point].reset(
          new Node(flow, [g, step, point](const continue_msg &m) {
            task(g, step, point);
            return m;
          }));
      int b[MOST_BEFORE], n = before(g, step, point, b), edges = n;
      for (int i = 0; i < n; i++) tbb::flow::make_edge(at(step - 1, b[i]), at(step, point));
      for (int reader : readers[(size_t)point]) {
        bool known = false;
        for (int i = 0; i < n; i++) known |= b[i] == reader;
        if (!known) tbb::flow::make_edge(at(step - 1, reader), at(step, point)), edges++;
      }
      if (readers[(size_t)point].empty() && step > 1)
        tbb::flow::make_edge(at(step - 2, point), at(step, point)), edges++;
      if (edges == 0) first.push_back(&at(step, point));
    }
  }
  for (Node *node : first) node->try_put(continue_msg());
  flow.wait_for_all();
}

static void tally() {
  counts[tbb::this_task_arena::current_thread_index() & (MOST_THREADS - 1)].tasks++;
}

void run_empty(int ranges, uint64_t tasks) {
  memset(counts, 0, sizeof counts);
  tbb::flow::graph flow;
  std::vector<std::unique_ptr<Node>> nodes;
  std::vector<Node *> first;
  Node *writer[LINES] = {};
  std::vector<Node *> readers[LINES];
  nodes.reserve(tasks);
  for (uint64_t i = 0; i < tasks; i++) {
    nodes.emplace_back(new Node(flow, [](const continue_msg &m) {
      tally();
      return m;
    }));
    Node *me = nodes.back().get();
    std::vector<Node *> from;
    if (ranges) {
      int l[3];
      lines_of(i, l);
      for (int k = 0; k < 2; k++) {
        if (writer[l[k]]) from.push_back(writer[l[k]]);
        if (l[k] != l[2]) readers[l[k]].push_back(me);
      }
      if (readers[l[2]].empty() && writer[l[2]]) from.push_back(writer[l[2]]);
      from.insert(from.end(), readers[l[2]].begin(), readers[l[2]].end());
      readers[l[2]].clear();
      writer[l[2]] = me;
    }
    int edges = 0;
    for (size_t k = 0; k < from.size(); k++) {
      bool known = from[k] == me;
      for (size_t j = 0; j < k; j++) known |= from[j] == from[k];
      if (!known) tbb::flow::make_edge(*from[k], *me), edges++;
    }
    if (edges == 0) first.push_back(me);
  }
  for (Node *node : first) node->try_put(continue_msg());
  flow.wait_for_all();
  counts[tbb::this_task_arena::current_thread_index() & (MOST_THREADS - 1)].tasks = 0;
}

static void nested(uint64_t tasks) {
  tally();
  uint64_t below = tasks - 1;
  if (below == 0) return;
  tbb::task_group both;
  if (below / 2) both.run([=] { nested(below / 2); });
  both.run([=] { nested(below - below / 2); });
  both.wait();
}

void run_nested(uint64_t tasks) {
  memset(counts, 0, sizeof counts);
  nested(tasks);
  counts[tbb::this_task_arena::current_thread_index() & (MOST_THREADS - 1)].tasks = 0;
}

double share_of_others(uint64_t tasks) {
  uint64_t others = 0;
  for (int i = 0; i < MOST_THREADS; i++) others += counts[i].tasks;
  return (double)others / (double)tasks;
}
