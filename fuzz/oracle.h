/* What the scanner must say of a text, worked out the slow way: every line cut by itself, every
   pair of documents compared, every number read by strtod. Any difference aborts. */

#ifndef HELDOUT_FUZZ_ORACLE_H
#define HELDOUT_FUZZ_ORACLE_H

#include <stdio.h>

#include "_scan_core.h"

#include "colliding.h"

#define REQUIRE(what)                                                          \
    do {                                                                       \
        if (!(what)) {                                                         \
            fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #what); \
            abort();                                                           \
        }                                                                      \
    } while (0)

#define MOST_COLUMNS 6

/* Fewer documents with one hash than this cannot use up the lookups of a query. */
#define NEVER_GIVEN_UP 250

typedef struct {
    size_t start, end;                   /* in the text, with its newline */
    int is_row, unicode, readable;       /* readable: rank and score can be read */
    size_t token[MOST_COLUMNS], length[MOST_COLUMNS];
    int64_t rank;
    double key;
} naive_line;

typedef struct {
    size_t first, lines, rows;           /* lines of the text; how many are rows */
    const naive_line *query;             /* its first row; NULL: none */
} naive_group;

typedef struct {
    const uint8_t *text;
    naive_line *lines;
    naive_group *groups;
    size_t n_lines, n_groups;
} naive_text;

static int is_blank(uint8_t byte) { return byte == ' ' || byte == '\t'; }

static int is_visible(uint8_t byte) { return byte > ' ' && byte != 0x7F; }

/* Optional sign, digits with at most one point and at least one digit, optional exponent. */
static int is_decimal(const char *at) {
    size_t digits;
    at += *at == '+' || *at == '-';
    digits = strspn(at, "0123456789");
    at += digits;
    if (*at == '.') {
        size_t more = strspn(++at, "0123456789");
        digits += more;
        at += more;
    }
    if (!digits) return 0;
    if (*at == 'e' || *at == 'E') {
        at++;
        at += *at == '+' || *at == '-';
        digits = strspn(at, "0123456789");
        at += digits;
    }
    return digits && !*at;
}

static int same_bits(double one, double other) { return !memcmp(&one, &other, sizeof one); }

/* A number that the scanner reads must be one, and be read exactly; which it leaves is its own
   choice, so it is asked. */
static int naive_score(const uint8_t *token, size_t length, int order, double *key) {
    char copy[512];
    double found = 0.0;
    if (!parse_score(token, &found)) return 0;
    REQUIRE(parse_score(token, &found) == token + length);
    if (length >= sizeof copy) { /* zeros in front */
        *key = order == ORDER_TREC9 ? (double)(float)found : found;
        return 1;
    }
    memcpy(copy, token, length);
    copy[length] = 0;
    REQUIRE(is_decimal(copy));
    REQUIRE(same_bits(found, strtod(copy, NULL)));
    *key = order == ORDER_TREC9 ? (double)(float)found : found;
    return 1;
}

static int naive_rank(const uint8_t *token, size_t length, int64_t *rank) {
    *rank = 0;
    if (length > 18) return 0;
    for (; length--; token++) {
        if (*token < '0' || *token > '9') return 0;
        *rank = *rank * 10 + (*token - '0');
    }
    return 1;
}

/* Line as `str.split` would cut it; control characters make it no row. */
static void naive_cut(const uint8_t *text, int columns, int order, naive_line *line) {
    size_t at = line->start, found = 0;
    line->is_row = text[at] != '#';
    while (line->is_row && at < line->end - 1) {
        if (is_blank(text[at])) {
            at++;
        } else if (!is_visible(text[at]) || found == (size_t)columns) {
            line->is_row = 0;
        } else {
            line->token[found] = at;
            while (is_visible(text[at])) line->unicode |= text[at++] >= 0x80;
            line->length[found] = at - line->token[found];
            found++;
        }
    }
    if (found != (size_t)columns) line->is_row = 0;
    if (!line->is_row) return;
    at = columns == 6 ? 3 : 2;
    line->readable = naive_rank(text + line->token[at], line->length[at], &line->rank);
    if (columns == 6 && !naive_score(text + line->token[4], line->length[4], order, &line->key))
        line->readable = 0;
}

static int same_token(const naive_text *own, const naive_line *one, const naive_line *other,
                      size_t column) {
    return one->length[column] == other->length[column] &&
           !memcmp(own->text + one->token[column], own->text + other->token[column],
                   one->length[column]);
}

static void naive_group_lines(naive_text *own) {
    size_t place;
    for (place = 0; place < own->n_lines; place++) {
        const naive_line *line = &own->lines[place];
        naive_group *group = own->n_groups ? &own->groups[own->n_groups - 1] : NULL;
        if (!group ||
            (line->is_row && (!group->query || !same_token(own, line, group->query, 0)))) {
            group = &own->groups[own->n_groups++];
            group->first = place;
            group->query = line->is_row ? line : NULL;
        }
        group->lines++;
        group->rows += (size_t)line->is_row;
    }
}

static naive_text naive_read(const uint8_t *text, size_t size, int columns, int order) {
    naive_text own = {.text = text};
    size_t at, start = 0, room = 1;
    for (at = 0; at < size; at++) room += text[at] == '\n';
    own.lines = calloc(room, sizeof *own.lines);
    own.groups = calloc(room, sizeof *own.groups);
    REQUIRE(own.lines && own.groups);
    for (at = 0; at < size; at++) {
        naive_line *line = &own.lines[own.n_lines];
        if (text[at] != '\n') continue;
        line->start = start;
        line->end = start = at + 1;
        naive_cut(text, columns, order, line);
        own.n_lines++;
    }
    naive_group_lines(&own);
    return own;
}

static void naive_free(naive_text *own) {
    free(own->lines);
    free(own->groups);
}

/* Absorbs words of eight bytes, each put together one byte after the other. */
static uint64_t naive_hash(const uint8_t *id, size_t length) {
    const uint64_t finish[] = {0xFF51AFD7ED558CCDull, 0xC4CEB9FE1A85EC53ull};
    uint64_t hash = length * 0x9E3779B97F4A7C15ull;
    size_t at, byte;
    for (at = 0; at < length; at += 8) {
        for (byte = 0; byte < 8 && at + byte < length; byte++)
            hash ^= (uint64_t)id[at + byte] << 8 * byte;
        hash *= 0x9E3779B97F4A7C15ull;
        hash ^= hash >> 32;
    }
    for (at = 0; at < 2; at++) hash = (hash ^ hash >> 33) * finish[at];
    return hash ^ hash >> 33;
}

/* The judged query's place, or -1. */
static long naive_query(const judgments *judged, const uint8_t *id, size_t length) {
    size_t place;
    for (place = 0; place < judged->n_queries; place++) {
        const judged_query *query = &judged->queries[place];
        if (query->length == length && !memcmp(judged->text + query->text, id, length))
            return (long)place;
    }
    return -1;
}

static const judged_document *naive_judged(const judgments *judged, long query, const uint8_t *id,
                                           size_t length) {
    uint32_t place, first, count;
    if (query < 0) return NULL;
    first = judged->queries[query].first;
    count = judged->queries[query].count;
    for (place = first; place < first + count; place++) {
        const judged_document *document = &judged->documents[place];
        if (document->length == length && !memcmp(judged->text + document->text, id, length))
            return document;
    }
    return NULL;
}

/* Whether the rows are such that the scanner may answer them: readable, each document once. */
static int naive_regular(const naive_text *own, const naive_group *group, size_t document) {
    const naive_line *lines = own->lines + group->first;
    size_t one, other;
    if (group->rows < group->lines) return 0;
    for (one = 0; one < group->lines; one++) {
        if (!lines[one].readable) return 0;
        for (other = 0; other < one; other++)
            if (same_token(own, &lines[one], &lines[other], document)) return 0;
    }
    return 1;
}

/* Whether a token of one line comes after that of another, byte by byte. */
static int naive_greater(const naive_text *own, const naive_line *one, const naive_line *other,
                         size_t token) {
    size_t at;
    for (at = 0; at < one->length[token] && at < other->length[token]; at++) {
        uint8_t a = own->text[one->token[token] + at], b = own->text[other->token[token] + at];
        if (a != b) return a > b;
    }
    return one->length[token] > other->length[token];
}

/* How many documents of a query, in the text and judged, have the hash of those of colliding.h. */
static size_t count_colliding(const naive_text *own, const naive_group *group,
                              const judgments *judged, long query, size_t document) {
    char id[64];
    size_t size = (size_t)snprintf(id, sizeof id, "%s%s", BEGINS[0], ENDS[0]), count = 0, at;
    uint64_t hash = naive_hash((const uint8_t *)id, size);
    for (at = 0; at < group->lines; at++) {
        const naive_line *line = &own->lines[group->first + at];
        if (line->is_row)
            count += hash == naive_hash(own->text + line->token[document], line->length[document]);
    }
    for (at = 0; query >= 0 && at < judged->queries[query].count; at++)
        count += hash == judged->documents[judged->queries[query].first + at].hash;
    return count;
}

static void check_rows(const scanner *found, const naive_text *own, const naive_group *group,
                       const segment *told, size_t document) {
    const naive_line *lines = own->lines + group->first;
    const row_columns *rows = found->rows + told->row;
    int64_t flags = 0, hits = 0;
    size_t at;
    long query = naive_query(found->judged, own->text + told->query, (size_t)told->query_length);
    REQUIRE(told->row >= 0 && (size_t)told->row + group->rows <= found->n_rows);
    for (at = 0; at < group->rows; at++) {
        const naive_line *line = &lines[at];
        const uint8_t *id = own->text + line->token[document];
        const judged_document *judged =
            naive_judged(found->judged, query, id, line->length[document]);
        REQUIRE(rows[at].document == line->token[document]);
        REQUIRE(rows[at].length == line->length[document]);
        REQUIRE(rows[at].rank == line->rank);
        REQUIRE(same_bits(rows[at].key, line->key));
        if (line->rank != (int64_t)at + 1) flags |= UNRANKED;
        if (at && !(line->key < lines[at - 1].key) &&
            (found->order != ORDER_MSMARCO || line->key != lines[at - 1].key))
            flags |= UNSORTED;
        if (at && found->order == ORDER_TREC && line->key < lines[at - 1].key &&
            (float)line->key == (float)lines[at - 1].key &&
            naive_greater(own, line, &lines[at - 1], document))
            flags |= CLOSE;
        if (line->unicode) flags |= UNICODE;
        if (at < found->depth) {
            REQUIRE((size_t)told->top + at < found->n_tops);
            REQUIRE(found->tops[(size_t)told->top + at] == naive_hash(id, rows[at].length));
        }
        if (judged) {
            REQUIRE(hits < told->hits);
            REQUIRE(found->hits[told->hit + hits].row == (int64_t)at);
            REQUIRE(found->hits[told->hit + hits].grade == judged->grade);
            hits++;
        }
    }
    REQUIRE(hits == told->hits);
    REQUIRE(told->flags == flags);
}

/* Hits and tops of a segment end where those of the next begin. */
static void check_next(const scanner *found, const segment *told) {
    const segment *next = told + 1;
    int last = next == found->segments + found->n_segments;
    size_t top = (size_t)told->rows < found->depth ? (size_t)told->rows : found->depth;
    REQUIRE((size_t)(told->hit + told->hits) == (last ? found->n_hits : (size_t)next->hit));
    REQUIRE((size_t)told->top + top == (last ? found->n_tops : (size_t)next->top));
}

static void check_segment(const scanner *found, const naive_text *own, const naive_group *group,
                          const segment *told) {
    const naive_line *first = &own->lines[group->first];
    size_t document = found->columns == 6 ? 2 : 1;
    long query;
    REQUIRE((size_t)told->start == first->start);
    REQUIRE((size_t)told->end == first[group->lines - 1].end);
    REQUIRE((size_t)told->line == group->first && (size_t)told->lines == group->lines);
    REQUIRE((size_t)told->rows == group->rows);
    REQUIRE(told->hit >= 0 && told->hits >= 0 && told->hits <= told->rows);
    REQUIRE((size_t)(told->hit + told->hits) <= found->n_hits);
    REQUIRE(told->top >= 0 && (size_t)told->top <= found->n_tops);
    if (!(told->flags & BROKEN)) check_next(found, told);
    if (!group->query) {
        REQUIRE(!told->query_length && told->flags & BROKEN);
        return;
    }
    REQUIRE((size_t)told->query == group->query->token[0]);
    REQUIRE((size_t)told->query_length == group->query->length[0]);
    query = naive_query(found->judged, own->text + told->query, (size_t)told->query_length);
    if (!naive_regular(own, group, document)) {
        REQUIRE(told->flags & BROKEN);
    } else if (!(told->flags & BROKEN)) {
        check_rows(found, own, group, told, document);
    } else {
        REQUIRE(count_colliding(own, group, found->judged, query, document) >= NEVER_GIVEN_UP);
    }
}

/* Everything that a call of scan_text said. */
static void check_scan(const scanner *found, const uint8_t *text, size_t size, int last,
                       int64_t consumed, int64_t lines) {
    naive_text own = naive_read(text, size, found->columns, found->order);
    size_t kept = own.n_groups, place;
    if (kept > MOST_SEGMENTS)
        kept = MOST_SEGMENTS;
    else if (kept && !last && own.groups[kept - 1].query)
        kept--;
    REQUIRE(found->n_segments == kept);
    if (kept) {
        const naive_group *group = &own.groups[kept - 1];
        REQUIRE((size_t)lines == group->first + group->lines);
        REQUIRE((size_t)consumed == own.lines[lines - 1].end);
    } else {
        REQUIRE(!lines && !consumed);
    }
    for (place = 0; place < kept; place++)
        check_segment(found, &own, &own.groups[place], &found->segments[place]);
    naive_free(&own);
}

#endif
