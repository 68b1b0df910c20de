/* Finds queries, rows and judged documents in the text of a run. Plain C11, no Python.

   The text is whole lines. It is cut into segments: neighbouring rows of one query, with any lines
   between or behind them that are no rows. A segment that is regular is answered here (its judged
   documents and the hashes of its first documents). Whatever is odd is only marked: what it means
   is decided in Python, which alone sorts, breaks ties and words problems.

   Nothing is read beyond the text, and the text must end with a newline, which every loop stops at.
   Memory comes from malloc; a function that returns 0 ran out of it. */

#ifndef HELDOUT_SCAN_CORE_H
#define HELDOUT_SCAN_CORE_H

#include <float.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef unsigned __int128 u128;

enum { ORDER_TREC = 0, ORDER_TREC9 = 1, ORDER_MSMARCO = 2 };

enum {
    BROKEN = 1,   /* must be read again, line by line */
    UNICODE = 2,  /* holds bytes beyond ASCII: are they visible characters? */
    UNSORTED = 4, /* scores do not fall strictly; or rise, where ranks decide */
    UNRANKED = 8, /* ranks are not 1, 2, 3, ... */
    CLOSE = 16    /* under ORDER_TREC: ORDER_TREC9 would swap two neighbours whose scores fall */
};

typedef struct {
    int64_t start, end;           /* bytes of the text */
    int64_t line, lines;          /* first line, counted from 0 in the text; number of lines */
    int64_t query, query_length;  /* its id in the text; length 0: no row at all */
    int64_t row, rows;            /* in the columns; number of rows */
    int64_t flags;
    int64_t hit, hits;            /* in the hits; number of judged documents */
    int64_t top;                  /* in the tops: hashes of its first documents, at most `depth` */
} segment;

typedef struct {
    int64_t row, grade;           /* row counted from 0 in the segment */
} judged_row;

typedef struct {
    double key;                   /* the score as the order compares it */
    int64_t rank;
    uint32_t document, length;    /* the document's id in the text */
} row_columns;

/* The judgments: all ids in one text, queries in an open hash table. */

typedef struct {
    uint64_t hash;
    uint32_t text, length;
    int64_t grade;
} judged_document;

typedef struct {
    uint64_t hash;
    uint32_t text, length;
    uint32_t first, count;        /* its documents */
} judged_query;

typedef struct {
    uint8_t *text;
    size_t size, room;
    judged_document *documents;
    size_t n_documents, documents_room;
    judged_query *queries;
    size_t n_queries, queries_room;
    uint32_t *table;              /* 1 + place of a query; 0: free */
    size_t table_size;            /* a power of two */
} judgments;

/* The documents of one query: those judged beforehand, and those seen so far. */

typedef struct {
    uint64_t hash;
    uint32_t epoch;               /* of the segment that it belongs to; others are free */
    uint32_t place;               /* a row of the columns, or a judged document */
} slot;

#define JUDGED 0x80000000u        /* in slot.place */

typedef struct {
    int columns, order;
    size_t depth;                 /* hashes kept of each segment */
    const judgments *judged;

    slot *slots;
    size_t n_slots, used;
    uint32_t epoch;
    uint64_t probes;

    row_columns *rows;
    size_t n_rows, rows_room;
    segment *segments;
    size_t n_segments, segments_room;
    judged_row *hits;
    size_t n_hits, hits_room;
    uint64_t *tops;
    size_t n_tops, tops_room;
} scanner;

/* Grows an array so that it holds `needed` items. */
static int grow(void *array, size_t *room, size_t needed, size_t item) {
    void **memory = array;
    size_t wanted = *room ? *room : 64;
    void *more;
    if (needed <= *room) return 1;
    while (wanted < needed) {
        if (wanted > SIZE_MAX / 2 / item) return 0;
        wanted *= 2;
    }
    more = realloc(*memory, wanted * item);
    if (!more) return 0;
    *memory = more;
    *room = wanted;
    return 1;
}

/* Hashes. The same as `hash_documents` in hashing.py. */

#define MULTIPLIER 0x9E3779B97F4A7C15ull

/* Eight bytes, the first one lowest. */
static uint64_t load_word(const uint8_t *text) {
    uint64_t word;
    memcpy(&word, text, 8);
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    word = __builtin_bswap64(word);
#endif
    return word;
}

/* Fewer than eight, filled up with zeros. */
static uint64_t load_rest(const uint8_t *text, size_t length) {
    uint64_t word = 0;
    while (length--) word = word << 8 | text[length];
    return word;
}

static uint64_t absorb(uint64_t hash, uint64_t word) {
    hash = (hash ^ word) * MULTIPLIER;
    return hash ^ (hash >> 32);
}

/* Up to `end` bytes may be read, so that the last word of most ids is loaded at once. */
static uint64_t hash_id(const uint8_t *text, size_t length, const uint8_t *end) {
    uint64_t hash = (uint64_t)length * MULTIPLIER;
    for (; length >= 8; length -= 8, text += 8) hash = absorb(hash, load_word(text));
    if (length)
        hash = absorb(hash, end - text >= 8 ? load_word(text) & ~(~0ull << 8 * length)
                                            : load_rest(text, length));
    hash = (hash ^ (hash >> 33)) * 0xFF51AFD7ED558CCDull;
    hash = (hash ^ (hash >> 33)) * 0xC4CEB9FE1A85EC53ull;
    return hash ^ (hash >> 33);
}

/* Judgments. */

static int judged_text(judgments *own, const uint8_t *text, size_t length, uint32_t *place) {
    if (length > UINT32_MAX - own->size) return 0;
    if (!grow(&own->text, &own->room, own->size + length + 1, 1)) return 0;
    memcpy(own->text + own->size, text, length);
    *place = (uint32_t)own->size;
    own->size += length;
    return 1;
}

static int add_query(judgments *own, const uint8_t *text, size_t length) {
    judged_query *query;
    if (!grow(&own->queries, &own->queries_room, own->n_queries + 1, sizeof *query)) return 0;
    query = &own->queries[own->n_queries];
    if (!judged_text(own, text, length, &query->text)) return 0;
    query->hash = hash_id(text, length, text + length);
    query->length = (uint32_t)length;
    query->first = (uint32_t)own->n_documents;
    query->count = 0;
    own->n_queries++;
    return 1;
}

/* A document of the query added last. */
static int add_document(judgments *own, const uint8_t *text, size_t length, int64_t grade) {
    judged_document *document;
    if (own->n_documents >= JUDGED - 1) return 0;
    if (!grow(&own->documents, &own->documents_room, own->n_documents + 1, sizeof *document))
        return 0;
    document = &own->documents[own->n_documents];
    if (!judged_text(own, text, length, &document->text)) return 0;
    document->hash = hash_id(text, length, text + length);
    document->length = (uint32_t)length;
    document->grade = grade;
    own->n_documents++;
    own->queries[own->n_queries - 1].count++;
    return 1;
}

static int index_queries(judgments *own) {
    size_t at, place;
    own->table_size = 16;
    while (own->table_size < 2 * own->n_queries) own->table_size *= 2;
    own->table = calloc(own->table_size, sizeof *own->table);
    if (!own->table) return 0;
    for (place = 0; place < own->n_queries; place++) {
        at = own->queries[place].hash & (own->table_size - 1);
        while (own->table[at]) at = (at + 1) & (own->table_size - 1);
        own->table[at] = (uint32_t)place + 1;
    }
    return 1;
}

static const judged_query *find_query(const judgments *own, const uint8_t *text, size_t length) {
    uint64_t hash = hash_id(text, length, text + length);
    size_t at = hash & (own->table_size - 1);
    for (; own->table[at]; at = (at + 1) & (own->table_size - 1)) {
        const judged_query *query = &own->queries[own->table[at] - 1];
        if (query->hash == hash && query->length == length &&
            !memcmp(own->text + query->text, text, length))
            return query;
    }
    return NULL;
}

static void free_judgments(judgments *own) {
    free(own->text);
    free(own->documents);
    free(own->queries);
    free(own->table);
    memset(own, 0, sizeof *own);
}

/* Documents of a query. Lookups are counted: ids made to collide must not cost more than this. */

#define PROBES_EACH 32

static int rehash(scanner *own, size_t size) {
    slot *old = own->slots, *slots = calloc(size, sizeof *slots);
    size_t from, at;
    if (!slots) return 0;
    for (from = 0; old && from < own->n_slots; from++) {
        if (old[from].epoch != own->epoch) continue;
        at = old[from].hash & (size - 1);
        while (slots[at].epoch) at = (at + 1) & (size - 1);
        slots[at] = old[from];
    }
    free(old);
    own->slots = slots;
    own->n_slots = size;
    return 1;
}

/* Forgets the documents of the query before. */
static int next_epoch(scanner *own) {
    own->used = 0;
    own->probes = 0;
    if (own->n_slots > 1u << 14) { /* one huge query must not slow down all that follow */
        free(own->slots);
        own->slots = NULL;
        own->n_slots = 0;
    }
    if (!own->slots || own->epoch == UINT32_MAX) {
        free(own->slots);
        own->slots = NULL;
        own->epoch = 1;
        return rehash(own, 1u << 11);
    }
    own->epoch++;
    return 1;
}

static int same_id(const scanner *own, const uint8_t *text, const slot *seen, const uint8_t *id,
                   size_t length) {
    if (seen->place & JUDGED) {
        const judged_document *document = &own->judged->documents[seen->place & ~JUDGED];
        return document->length == length &&
               !memcmp(own->judged->text + document->text, id, length);
    }
    return own->rows[seen->place].length == length &&
           !memcmp(text + own->rows[seen->place].document, id, length);
}

/* The slot of this id, free or taken; NULL after too many probes. */
static slot *find_slot(scanner *own, const uint8_t *text, uint64_t hash, const uint8_t *id,
                       size_t length) {
    size_t at = hash & (own->n_slots - 1);
    for (;; at = (at + 1) & (own->n_slots - 1)) {
        slot *found = &own->slots[at];
        if (found->epoch != own->epoch) return found;
        if (found->hash == hash && same_id(own, text, found, id, length)) return found;
        if (++own->probes > PROBES_EACH * (own->used + 1000)) return NULL;
    }
}

static int take_slot(scanner *own, slot *free_slot, uint64_t hash, uint32_t place) {
    free_slot->hash = hash;
    free_slot->epoch = own->epoch;
    free_slot->place = place;
    own->used++;
    return own->used * 2 <= own->n_slots || rehash(own, own->n_slots * 2);
}

/* Numbers. */

/* 0: blank, newline or a byte that no id may hold ends a token; 1: part of one; 2: beyond ASCII. */
static int token_class(uint8_t byte) {
    return byte >= 0x80 ? 2 : byte > 0x20 && byte != 0x7F;
}

static int is_digit(uint8_t byte) { return byte >= '0' && byte <= '9'; }

/* Up to 18 digits; NULL if there is anything else. */
static const uint8_t *parse_rank(const uint8_t *at, int64_t *rank) {
    const uint8_t *start = at;
    int64_t value = 0;
    while (is_digit(*at) && at - start < 18) value = value * 10 + (*at++ - '0');
    *rank = value;
    return at > start && !token_class(*at) ? at : NULL;
}

static const uint64_t TENS[] = {
    1ull, 10ull, 100ull, 1000ull, 10000ull, 100000ull, 1000000ull, 10000000ull, 100000000ull,
    1000000000ull, 10000000000ull, 100000000000ull, 1000000000000ull, 10000000000000ull,
    100000000000000ull, 1000000000000000ull, 10000000000000000ull, 100000000000000000ull,
    1000000000000000000ull, 10000000000000000000ull};

/* Exact in float64, so that one division of an exact integer by one of them is rounded once. */
static const double POWERS[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};

static int leading_zeros(u128 value) {
    uint64_t high = (uint64_t)(value >> 64);
    return high ? __builtin_clzll(high) : 64 + __builtin_clzll((uint64_t)value);
}

/* The float64 nearest to digits / 10^places, ties to even; 0 < digits, 0 < places <= 22. */
static double divide(uint64_t digits, int places) {
    u128 divisor = places > 19 ? (u128)TENS[19] * TENS[places - 19] : TENS[places];
    int shift = 64 + __builtin_clzll(digits);
    u128 numerator = (u128)digits << shift; /* at least 2^127 over at most 2^74: 54 bits or more */
    u128 quotient = numerator / divisor;
    int dropped = 128 - leading_zeros(quotient) - 53;
    u128 rest = quotient & (((u128)1 << dropped) - 1), half = (u128)1 << (dropped - 1);
    uint64_t mantissa = (uint64_t)(quotient >> dropped);
    if (rest > half || (rest == half && (quotient * divisor != numerator || (mantissa & 1))))
        mantissa++;
    return ldexp((double)mantissa, dropped - shift);
}

/* A decimal number of up to 19 digits, not too small or great; NULL if somebody else must read
   it. Exactly rounded, like Python's float. */
static const uint8_t *parse_score(const uint8_t *at, double *score) {
    uint64_t digits = 0;
    int count = 0, any = 0, exponent = 0, negative = *at == '-';
    if (*at == '-' || *at == '+') at++;
    for (; is_digit(*at); at++, any = 1) {
        if (!digits && *at == '0') continue;
        if (++count > 19) return NULL;
        digits = digits * 10 + (uint64_t)(*at - '0');
    }
    if (*at == '.') {
        for (at++; is_digit(*at); at++, any = 1) {
            if (--exponent < -400) return NULL;
            if (!digits && *at == '0') continue;
            if (++count > 19) return NULL;
            digits = digits * 10 + (uint64_t)(*at - '0');
        }
    }
    if (!any) return NULL;
    if (*at == 'e' || *at == 'E') {
        int minus = at[1] == '-', written = 0;
        at += 1 + (at[1] == '-' || at[1] == '+');
        if (!is_digit(*at)) return NULL;
        for (; is_digit(*at); at++) {
            written = written * 10 + (*at - '0');
            if (written > 400) return NULL;
        }
        exponent += minus ? -written : written;
    }
    if (token_class(*at)) return NULL;
    if (!digits) {
        *score = 0.0;
    } else if (exponent >= 0) {
        if (exponent > 19) return NULL;
        *score = (double)((u128)digits * TENS[exponent]);
    } else {
        if (exponent < -22) return NULL;
        *score = digits >> 53 || FLT_EVAL_METHOD ? divide(digits, -exponent)
                                                 : (double)digits / POWERS[-exponent];
    }
    if (negative) *score = -*score;
    return at;
}

/* Lines. */

typedef struct {
    const uint8_t *query, *document, *tag;
    size_t query_length, document_length;
    int64_t rank;
    double score;                /* 0 in 3 columns */
    int numbers;                 /* whether both could be read */
    int same_query;              /* as in the row before */
    int unicode;                 /* whether there is a byte beyond ASCII */
    int query_unicode, tag_unicode;
    const uint8_t *end;          /* its newline */
} line_parts;

static const uint8_t *skip_blanks(const uint8_t *at) {
    while (*at == ' ' || *at == '\t') at++;
    return at;
}

#define EACH(byte) (0x0101010101010101ull * (byte))

/* Where eight bytes hold one that is no visible ASCII character: the top bit of the first such byte
   is set, and of none before it. */
static uint64_t find_end(uint64_t word) {
    uint64_t blank = (word - EACH(0x21)) & ~word, last = word ^ EACH(0x7F);
    return (blank | ((last - EACH(1)) & ~last) | word) & EACH(0x80);
}

static const uint8_t *skip_token(const uint8_t *at, const uint8_t *text_end, int *unicode) {
    int class;
    while (text_end - at >= 8) {
        uint64_t ends = find_end(load_word(at));
        if (ends) {
            at += __builtin_ctzll(ends) / 8;
            break;
        }
        at += 8;
    }
    while ((class = token_class(*at))) {
        *unicode |= class >> 1;
        at++;
    }
    return at;
}

/* Whether `length` bytes, at least one, are the same at a place and at an earlier one. */
static int same_bytes(const uint8_t *at, const uint8_t *before, size_t length,
                      const uint8_t *text_end) {
    for (; length && text_end - at >= 8; at += 8, before += 8, length -= 8) {
        uint64_t differ = load_word(at) ^ load_word(before);
        if (length < 8) return !(differ << (64 - 8 * length));
        if (differ) return 0;
    }
    while (length && *at == *before) at++, before++, length--;
    return !length;
}

static const uint8_t *cut_rank(const uint8_t *at, const uint8_t *text_end, line_parts *parts) {
    const uint8_t *end = parse_rank(at, &parts->rank);
    if (end) return end;
    parts->numbers = 0;
    return skip_token(at, text_end, &parts->unicode);
}

static const uint8_t *cut_score(const uint8_t *at, const uint8_t *text_end, line_parts *parts) {
    const uint8_t *end = parse_score(at, &parts->score);
    if (end) return end;
    parts->numbers = 0;
    return skip_token(at, text_end, &parts->unicode);
}

/* Cuts one line into its columns; 0 if it is no row. `before` is the row before it, if any: what
   it shares with that is not looked at again. */
static int cut_line(const uint8_t *at, const uint8_t *text_end, int columns,
                    const line_parts *before, line_parts *parts) {
    const uint8_t *token;
    if (*at == '#') return 0;
    parts->unicode = parts->query_unicode = parts->tag_unicode = 0;
    parts->numbers = 1;
    parts->score = 0.0;
    if (before && (size_t)(text_end - at) > before->query_length &&
        same_bytes(at, before->query, before->query_length, text_end) &&
        !token_class(at[before->query_length])) {
        parts->same_query = 1;
        parts->query = at;
        at += parts->query_length = before->query_length;
        parts->query_unicode = before->query_unicode;
    } else {
        parts->query = at = skip_blanks(at);
        at = skip_token(at, text_end, &parts->query_unicode);
        parts->query_length = (size_t)(at - parts->query);
        parts->same_query = before && parts->query_length == before->query_length &&
                            !memcmp(parts->query, before->query, before->query_length);
    }
    if (columns == 6) at = skip_token(skip_blanks(at), text_end, &parts->unicode); /* Q0 */
    parts->document = at = skip_blanks(at);
    at = skip_token(at, text_end, &parts->unicode);
    parts->document_length = (size_t)(at - parts->document);
    token = skip_blanks(at);
    at = cut_rank(token, text_end, parts);
    if (columns == 6) {
        at = cut_score(skip_blanks(at), text_end, parts);
        parts->tag = token = skip_blanks(at);
        if (before && text_end - token > before->end - before->tag &&
            same_bytes(token, before->tag, (size_t)(before->end - before->tag) + 1, text_end)) {
            parts->end = token + (before->end - before->tag);
            parts->tag_unicode = before->tag_unicode;
            parts->unicode |= parts->query_unicode | parts->tag_unicode;
            return 1;
        }
        at = skip_token(token, text_end, &parts->tag_unicode);
    }
    parts->unicode |= parts->query_unicode | parts->tag_unicode;
    if (at == token) return 0; /* an empty token can only be followed by empty ones */
    parts->end = skip_blanks(at);
    return *parts->end == '\n';
}

/* Segments. */

static int open_segment(scanner *own, const uint8_t *text, int64_t start, int64_t line,
                        const line_parts *parts) {
    segment *made;
    const judged_query *query;
    uint32_t place;
    if (!grow(&own->segments, &own->segments_room, own->n_segments + 1, sizeof *made)) return 0;
    made = &own->segments[own->n_segments++];
    memset(made, 0, sizeof *made);
    made->start = start;
    made->line = line;
    made->row = (int64_t)own->n_rows;
    made->hit = (int64_t)own->n_hits;
    made->top = (int64_t)own->n_tops;
    if (!parts) return 1;
    made->query = parts->query - text;
    made->query_length = (int64_t)parts->query_length;
    if (!next_epoch(own)) return 0;
    query = find_query(own->judged, parts->query, parts->query_length);
    for (place = 0; query && place < query->count; place++) {
        const judged_document *document = &own->judged->documents[query->first + place];
        slot *found = find_slot(own, text, document->hash, own->judged->text + document->text,
                                document->length);
        if (!found) {
            made->flags |= BROKEN;
            return 1;
        }
        if (!take_slot(own, found, document->hash, JUDGED | (query->first + place))) return 0;
    }
    return 1;
}

/* Looks the row's document up among those before it and those judged. */
static int place_document(scanner *own, const uint8_t *text, const uint8_t *text_end,
                          segment *current, const row_columns *row) {
    const uint8_t *id = text + row->document;
    uint64_t hash = hash_id(id, row->length, text_end);
    slot *found = find_slot(own, text, hash, id, row->length);
    uint32_t place = (uint32_t)(row - own->rows);
    if (!found) {
        current->flags |= BROKEN;
        return 1;
    }
    if ((size_t)current->rows < own->depth) {
        if (!grow(&own->tops, &own->tops_room, own->n_tops + 1, sizeof *own->tops)) return 0;
        own->tops[own->n_tops++] = hash;
    }
    if (found->epoch != own->epoch) return take_slot(own, found, hash, place);
    if (!(found->place & JUDGED)) {
        current->flags |= BROKEN; /* the same document twice */
        return 1;
    }
    if (!grow(&own->hits, &own->hits_room, own->n_hits + 1, sizeof *own->hits)) return 0;
    own->hits[own->n_hits].row = current->rows;
    own->hits[own->n_hits].grade = own->judged->documents[found->place & ~JUDGED].grade;
    own->n_hits++;
    current->hits++;
    found->place = place;
    return 1;
}

/* Whether the id of a row is greater than that of the row before it. */
static int rises(const uint8_t *text, const row_columns *row) {
    const row_columns *before = row - 1;
    size_t common = row->length < before->length ? row->length : before->length;
    int differ = memcmp(text + row->document, text + before->document, common);
    return differ ? differ > 0 : row->length > before->length;
}

static int take_row(scanner *own, const uint8_t *text, const uint8_t *text_end,
                    const line_parts *parts) {
    segment *current = &own->segments[own->n_segments - 1];
    row_columns *row;
    if (parts->unicode) current->flags |= UNICODE;
    if (current->flags & BROKEN) {
        current->rows++;
        return 1;
    }
    if (own->n_rows >= JUDGED - 1) return 0;
    if (!grow(&own->rows, &own->rows_room, own->n_rows + 1, sizeof *row)) return 0;
    row = &own->rows[own->n_rows++];
    row->document = (uint32_t)(parts->document - text);
    row->length = (uint32_t)parts->document_length;
    row->rank = parts->rank;
    row->key = own->order == ORDER_TREC9 ? (double)(float)parts->score : parts->score;
    if (!parts->numbers) current->flags |= BROKEN;
    if (row->rank != current->rows + 1) current->flags |= UNRANKED;
    if (current->rows && (own->order == ORDER_MSMARCO ? row->key > row[-1].key
                                                      : !(row->key < row[-1].key)))
        current->flags |= UNSORTED;
    if (current->rows && own->order == ORDER_TREC && (float)row->key == (float)row[-1].key &&
        row->key < row[-1].key && rises(text, row))
        current->flags |= CLOSE;
    if (!(current->flags & BROKEN) && !place_document(own, text, text_end, current, row)) return 0;
    current->rows++;
    return 1;
}

/* Many short segments would take much more room than their text. */
#ifndef MOST_SEGMENTS
#define MOST_SEGMENTS 4096
#endif

/* Cuts the text into segments. Unless it is the last text, its last query may go on in the next and
   is left; so are those beyond the most. `*consumed` bytes and `*lines` lines are dealt with. 0: out of memory, or more than
   4 GiB of text, or text without a newline at its end. */
static int scan_text(scanner *own, const uint8_t *text, size_t size, int last, int64_t *consumed,
                     int64_t *lines) {
    const uint8_t *at = text, *text_end = text + size, *line_end;
    line_parts parts[2], *before = NULL, *now = &parts[0];
    int64_t line = 0;
    own->n_segments = own->n_rows = own->n_hits = own->n_tops = 0;
    *consumed = *lines = 0;
    if (!size) return 1;
    if (size > UINT32_MAX || text[size - 1] != '\n') return 0;
    for (; at < text_end; at = line_end + 1, line++) {
        int is_row = cut_line(at, text_end, own->columns, before, now);
        segment *current = own->n_segments ? &own->segments[own->n_segments - 1] : NULL;
        line_end = is_row ? now->end : memchr(at, '\n', (size_t)(text_end - at));
        if (is_row) {
            if (!now->same_query && !open_segment(own, text, at - text, line, now)) return 0;
            if (!take_row(own, text, text_end, now)) return 0;
            before = now;
            now = &parts[now == &parts[0]];
        } else {
            if (!current && !open_segment(own, text, at - text, line, NULL)) return 0;
            own->segments[own->n_segments - 1].flags |= BROKEN;
        }
        current = &own->segments[own->n_segments - 1];
        current->end = line_end + 1 - text;
        current->lines++;
        if (own->n_segments > MOST_SEGMENTS) {
            last = 0;
            line++;
            break;
        }
    }
    if (!last && own->segments[own->n_segments - 1].query_length) {
        own->n_segments--;
        line -= own->segments[own->n_segments].lines;
        text_end = text + own->segments[own->n_segments].start;
        own->n_hits = (size_t)own->segments[own->n_segments].hit;
        own->n_tops = (size_t)own->segments[own->n_segments].top;
    }
    *consumed = text_end - text;
    *lines = line;
    return 1;
}

static void free_scanner(scanner *own) {
    free(own->slots);
    free(own->rows);
    free(own->segments);
    free(own->hits);
    free(own->tops);
    memset(own, 0, sizeof *own);
}

#endif
