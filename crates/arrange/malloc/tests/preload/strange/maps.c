/* A process that has as many mappings as the system lets it have (vm.max_map_count) goes on allocating small objects,
 * before anything is placed or, with an argument, after so many objects; then it gives the mappings back. Prints
 * "ok". */
#include "../rules/rules.h"
#include <stdio.h>
#include <sys/mman.h>

enum { MOST = 1 << 21 };
static unsigned char *own[SOME];

int main(int count, char **arguments) {
    size_t page = (size_t)sysconf(_SC_PAGESIZE), made = 0;
    unsigned char *space = mmap(NULL, MOST * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (space == MAP_FAILED) fail("no address space");
    churn(own, 1, count > 1 ? atol(arguments[1]) : 0);
    /* Every second page is of another kind, so that each is a mapping. Some are left, for what any malloc needs. */
    while (made < MOST && !mprotect(space + made * page, page, PROT_READ)) made += 2;
    if (made == MOST) return puts("no limit") < 0;
    for (int i = 0; i < 8 && made >= 2; i++) made -= 2, mprotect(space + made * page, page, PROT_NONE);
    churn(own, 2, 300000);
    for (size_t at = 0; at < made; at += 2) mprotect(space + at * page, page, PROT_NONE);
    munmap(space, MOST * page);
    churn(own, 3, 300000);
    drop_all(own);
    return puts("ok") < 0;
}
