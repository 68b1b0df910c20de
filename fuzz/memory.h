/* calloc, realloc and free that are counted, and of which the n-th call can fail.

   Included before the scanner, so that its own calls are these. */

#ifndef HELDOUT_FUZZ_MEMORY_H
#define HELDOUT_FUZZ_MEMORY_H

#include <stddef.h>
#include <stdlib.h>

static long allocations_left = -1; /* until the one that fails; below 0: none fails */
static long blocks_held;           /* those not yet freed */

static int allocation_fails(void) { return allocations_left >= 0 && !allocations_left--; }


static void *counted_calloc(size_t count, size_t size) {
    void *made = allocation_fails() ? NULL : calloc(count, size);
    blocks_held += made != NULL;
    return made;
}

/* Under AddressSanitizer it always moves: a pointer kept from before is found. */
static void *counted_realloc(void *old, size_t size) {
    void *made = allocation_fails() ? NULL : realloc(old, size);
    blocks_held += made && !old;
    return made;
}

static void counted_free(void *old) {
    blocks_held -= old != NULL;
    free(old);
}

/* For the harness itself. */
static void plain_free(void *old) { free(old); }

#define calloc counted_calloc
#define realloc counted_realloc
#define free counted_free

#endif
