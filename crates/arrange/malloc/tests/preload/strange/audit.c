/* A library that looks on while others are loaded and bound (LD_AUDIT, rtld-audit(7)). It says nothing. */
#define _GNU_SOURCE
#include <link.h>

unsigned la_version(unsigned version) { return version; }

unsigned la_objopen(struct link_map *map, Lmid_t space, uintptr_t *cookie) {
    (void)map, (void)space, (void)cookie;
    return LA_FLG_BINDTO | LA_FLG_BINDFROM;
}

#ifdef __x86_64__
uintptr_t la_symbind64(Elf64_Sym *symbol, unsigned index, uintptr_t *from, uintptr_t *to, unsigned *flags,
                       const char *name) {
    (void)index, (void)from, (void)to, (void)flags, (void)name;
    return symbol->st_value;
}
#endif
