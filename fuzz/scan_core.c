/* Fuzzes _scan_core.h: bytes become judgments and the text of a run, which is scanned in one piece
   and in several, with memory and without. oracle.h says what must come out.

   Built with libFuzzer, or with -DSTANDALONE to run files of stored inputs (see README.md). */

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "memory.h"
#include "oracle.h"

/* Order and columns, and how many are judged; depth, what follows, whether epochs run out; two
   cuts; queries and documents judged; the allocation that fails. */
#define HEADER 7
#define MOST_TEXT 16384

/* The input. */

typedef struct {
    const uint8_t *at, *end;
} input;

static uint8_t take(input *from) { return from->at < from->end ? *from->at++ : 0; }

/* The text that is made of it. */

typedef struct {
    uint8_t *bytes;
    size_t size;
} text_buffer;

static void put(text_buffer *to, const void *bytes, size_t size) {
    if (size > MOST_TEXT - to->size) size = MOST_TEXT - to->size;
    memcpy(to->bytes + to->size, bytes, size);
    to->size += size;
}

static void put_string(text_buffer *to, const char *string) { put(to, string, strlen(string)); }

static const char *const QUERIES[] = {"1", "q", "q1", "12345678", "123456789", "1234567812345678",
                                      "\xc3\xbc", "q\xff", "\x01", "#", "01", "12345679"};
static const char *const DOCUMENTS[] = {
    "a", "b", "aa", "d0000001", "d0000002", "d00000012", "\xe2\x80\x8b", "x\x7f", "\xf0\x9f\x98\x80",
    "-", "j1", "j2", "j1234", "1234567890123456", "12345678901234567", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "#1"};
static const char *const RANKS[] = {
    "1", "2", "3", "01", "0", "-1", "x", "1.0", "999999999999999999", "9999999999999999999",
    "000000000000000001", "0000000000000000001", "", "\xd9\xa1"};
static const char *const SCORES[] = {
    "1", "1.0", "1e0", "-1", "0", "-0", "+.5e-3", "7.", ".", "e1", "1e", "1e+", "1e-", "-", "",
    "1e-7", "0.1", "1e400", "1e-400", "1e401", "1e22", "1e-22", "1e23", "1e-23", "1e19", "1e20",
    "9007199254740993", "9007199254740992.5", "900719925474099.35", "1234567890123456789",
    "9999999999999999999", "18446744073709551616", "0.1234567890123456789", "12345678901234567e-22",
    "4.9e-324", "5e-324", "2.2250738585072014e-308", "1.7976931348623157e308", "3.5e38", "1e-46",
    "nan", "inf", "0x10", "1_0", "1e0000000000000000001", "0000000000000000000000000000001",
    "1e99999999999", "0e-99999999999",
    "90071992547409.93", "9007199254740993e-22", "1801870649589760.2", "82884869532443815e-1",
    "7284039963798354.5", "0.0000000000000000000000001", "1.00000000000000000000", "1,5", "\xd9\xa1", "--1", "1e1e1"};
static const char *const TAGS[] = {"t", "tag", "12345678", "t\xff", "\xe2\x80\x8b", "t\x01", "", "u"};
static const char *const BLANKS[] = {" ", "\t", "  ", " \t ", "", "\x0b", "\r"};
static const char *const ENDS_OF_LINES[] = {"\n", " \n", "\r\n", "\n\n", " x\n", "\n#\n", "\t\n", ""};

#define PICK(list, from) (list)[(from) % (sizeof(list) / sizeof *(list))]

/* A row of any tokens. */
static void put_odd_row(text_buffer *to, input *from, int columns) {
    const char *blank = PICK(BLANKS, take(from));
    put_string(to, PICK(QUERIES, take(from)));
    put_string(to, blank);
    if (columns == 6) put_string(to, "Q0");
    if (columns == 6) put_string(to, PICK(BLANKS, take(from)));
    put_string(to, PICK(DOCUMENTS, take(from)));
    put_string(to, blank);
    put_string(to, PICK(RANKS, take(from)));
    if (columns == 6) {
        put_string(to, blank);
        put_string(to, PICK(SCORES, take(from)));
        put_string(to, blank);
        put_string(to, PICK(TAGS, take(from)));
    }
    put_string(to, PICK(ENDS_OF_LINES, take(from)));
}

static void put_row(text_buffer *to, int columns, const char *query, const char *document,
                    int rank, const char *tag) {
    char row[256];
    int size = columns == 6
                   ? snprintf(row, sizeof row, "%s Q0 %s %d %d.%d %s\n", query, document, rank,
                              1000 - rank, rank % 7, tag)
                   : snprintf(row, sizeof row, "%s\t%s\t%d\n", query, document, rank);
    put(to, row, (size_t)size);
}

/* Neighbouring rows of one query that are as they should be; their ids may collide. */
static void put_series(text_buffer *to, input *from, int columns) {
    static const char *const forms[] = {"clueweb09-en%04d-1", "j%d", "d%07d"};
    const char *query = PICK(QUERIES, take(from)), *tag = PICK(TAGS, take(from));
    int rows = take(from), kind = take(from) % 4, rank;
    rows = rows < 240 ? rows % 32 : COLLIDING * COLLIDING - (255 - rows);
    for (rank = 1; rank <= rows; rank++) {
        char document[64];
        if (kind == 3)
            snprintf(document, sizeof document, "%s%s", BEGINS[(rank - 1) / COLLIDING % COLLIDING],
                     ENDS[(rank - 1) % COLLIDING]);
        else
            snprintf(document, sizeof document, forms[kind], rank);
        put_row(to, columns, query, document, rank, tag);
    }
}

/* The line before once more. */
static void put_again(text_buffer *to) {
    size_t start = to->size;
    if (!start) return;
    for (start--; start && to->bytes[start - 1] != '\n'; start--) {
    }
    put(to, to->bytes + start, to->size - start);
}

static void put_raw(text_buffer *to, input *from, size_t size) {
    if (size > (size_t)(from->end - from->at)) size = (size_t)(from->end - from->at);
    put(to, from->at, size);
    from->at += size;
}

static void put_lines(text_buffer *to, input *from, int columns) {
    char document[16];
    int rank = 1;
    while (from->at < from->end && to->size < MOST_TEXT) {
        uint8_t kind = take(from);
        switch (kind % 8) {
        case 0:
            put_series(to, from, columns);
            break;
        case 1:
            put_raw(to, from, take(from));
            break;
        case 2:
            put_again(to);
            break;
        case 3:
        case 4:
            rank = kind & 64 ? rank : 1;
            snprintf(document, sizeof document, "d%07d", kind >> 4);
            put_row(to, columns, PICK(QUERIES, take(from)), document, rank++, "t");
            break;
        default:
            put_odd_row(to, from, columns);
        }
    }
}

static void end_line(text_buffer *to) {
    if (!to->size || to->bytes[to->size - 1] == '\n') return;
    if (to->size == MOST_TEXT) to->size--;
    to->bytes[to->size++] = '\n';
}

/* Judgments. */

/* So many that the table of a query's documents must grow. */
static int judge_many(judgments *judged, unsigned count) {
    char id[16];
    for (; count; count--) {
        int size = snprintf(id, sizeof id, "j%u", count);
        if (!add_document(judged, (const uint8_t *)id, (size_t)size, count)) return 0;
    }
    return 1;
}

static int judge(judgments *judged, uint8_t queries, uint8_t documents, unsigned many) {
    size_t query, document, colliding = many == 1500 ? COLLIDING * COLLIDING : COLLIDING;
    char id[64];
    for (query = 0; query < sizeof QUERIES / sizeof *QUERIES; query++) {
        const char *name = QUERIES[query];
        if (!(queries >> query % 8 & 1)) continue;
        if (!add_query(judged, (const uint8_t *)name, strlen(name))) return 0;
        for (document = 0; document < sizeof DOCUMENTS / sizeof *DOCUMENTS; document++) {
            name = DOCUMENTS[document];
            if (documents >> document % 8 & 1 && *name != 'j' && /* those are judge_many's */
                !add_document(judged, (const uint8_t *)name, strlen(name), (int64_t)document - 3))
                return 0;
        }
        for (document = 0; documents & 4 && document < colliding; document++) {
            int size = snprintf(id, sizeof id, "%s%s", BEGINS[document / COLLIDING],
                                ENDS[document % COLLIDING]);
            if (!add_document(judged, (const uint8_t *)id, (size_t)size, 7)) return 0;
        }
        if (query == 1 && !judge_many(judged, many)) return 0;
    }
    return index_queries(judged);
}

/* What a scan said, told so that it does not depend on where the text was cut. */

typedef struct {
    int64_t start, end, line, lines, query, query_length, rows, flags;
    uint64_t hits, tops;
} answer;

typedef struct {
    answer *answers;
    size_t count, room;
} answers;

static void note(answers *to, const scanner *found, int64_t base, int64_t line) {
    size_t place;
    int64_t at;
    for (place = 0; place < found->n_segments; place++) {
        const segment *told = &found->segments[place];
        answer made = {.start = base + told->start, .end = base + told->end,
                       .line = line + told->line, .lines = told->lines,
                       .query_length = told->query_length, .rows = told->rows,
                       .flags = told->flags & BROKEN ? BROKEN : told->flags};
        answer *before = to->count ? &to->answers[to->count - 1] : NULL;
        if (told->query_length) made.query = base + told->query;
        for (at = 0; !(told->flags & BROKEN) && at < told->hits; at++)
            made.hits = absorb(made.hits, (uint64_t)found->hits[told->hit + at].row * 31 +
                                              (uint64_t)found->hits[told->hit + at].grade);
        for (at = 0; !(told->flags & BROKEN) && at < told->rows && at < (int64_t)found->depth; at++)
            made.tops = absorb(made.tops, found->tops[told->top + at]);
        REQUIRE(made.start == (before ? before->end : 0));
        REQUIRE(made.line == (before ? before->line + before->lines : 0));
        if (before && !before->query_length && !made.query_length) {
            before->end = made.end; /* lines before the first query, in two pieces */
            before->lines += made.lines;
            continue;
        }
        REQUIRE(grow(&to->answers, &to->room, to->count + 1, sizeof made));
        to->answers[to->count++] = made;
    }
}

/* Scans as `_scanned` of runs.py does: again while there is more. 0: out of memory. */
static int scan_all(scanner *own, const uint8_t *text, size_t size, int last, int checked,
                    answers *told, int64_t *base, int64_t *line) {
    size_t done = 0;
    for (;;) {
        int64_t consumed, lines;
        uint8_t *exact = malloc(size > done ? size - done : 1); /* exactly, for the sanitizer */
        int there, more;
        REQUIRE(exact);
        memcpy(exact, text + done, size - done);
        there = scan_text(own, exact, size - done, last, &consumed, &lines);
        if (there && checked) check_scan(own, exact, size - done, last, consumed, lines);
        if (there && told) note(told, own, *base, *line);
        plain_free(exact);
        if (!there) return 0;
        REQUIRE(consumed >= 0 && (size_t)consumed <= size - done);
        more = own->n_segments >= MOST_SEGMENTS && consumed;
        done += (size_t)consumed;
        *base += consumed;
        *line += lines;
        if (!more) break;
    }
    if (last) REQUIRE(done == size);
    return 1;
}

/* In pieces of whole lines, with what was left carried on, as `_parts` of runs.py does. */
static int scan_pieces(scanner *own, const text_buffer *text, const uint8_t *cuts, int checked,
                       answers *told) {
    int64_t base = 0, line = 0;
    size_t piece;
    for (piece = 0; piece < 2; piece++) {
        size_t end = text->size * cuts[piece] / 256;
        while (end && text->bytes[end - 1] != '\n') end--;
        if (end <= (size_t)base) continue;
        if (!scan_all(own, text->bytes + base, end - (size_t)base, 0, checked, told, &base, &line))
            return 0;
    }
    return scan_all(own, text->bytes + base, text->size - (size_t)base, 1, checked, told, &base,
                    &line);
}

static void check_pieces(scanner *own, const text_buffer *text, const uint8_t *header) {
    const uint8_t whole[] = {0, 0};
    answers one = {0}, several = {0};
    REQUIRE(scan_pieces(own, text, whole, 1, &one));
    if (header[1] & 128 && own->slots) own->epoch = UINT32_MAX - 2; /* soon after the last one */
    REQUIRE(scan_pieces(own, text, header + 2, 1, &several));
    REQUIRE(one.count == several.count);
    REQUIRE(!one.count || !memcmp(one.answers, several.answers, one.count * sizeof *one.answers));
    free(one.answers);
    free(several.answers);
}

/* A call that gets no memory says so; the scanner can be used again. */
static void check_without_memory(const scanner *like, const text_buffer *text,
                                 const uint8_t *header, unsigned many) {
    judgments judged = {0};
    scanner own = {.columns = like->columns, .order = like->order, .depth = like->depth,
                   .judged = &judged};
    int there;
    allocations_left = header[6] - 1;
    there = judge(&judged, header[4], header[5], many);
    if (there) {
        there = scan_pieces(&own, text, header + 2, 0, NULL);
        REQUIRE(there || allocations_left < 0);
        allocations_left = -1;
        REQUIRE(scan_pieces(&own, text, header + 2, 1, NULL));
    }
    allocations_left = -1;
    free_scanner(&own);
    free_judgments(&judged);
}

static void check_input(const uint8_t *header, const text_buffer *text, int columns, int order) {
    static const size_t depths[] = {0, 1, 3, 100};
    static const unsigned manies[] = {0, 0, 0, 0, 1500, 9000, 0, 0};
    unsigned many = manies[header[0] / 4 % 8];
    judgments judged = {0};
    scanner own = {.columns = columns, .order = order, .depth = depths[header[1] & 3],
                   .judged = &judged};
    REQUIRE(judge(&judged, header[4], header[5], many));
    check_pieces(&own, text, header);
    if (header[6]) check_without_memory(&own, text, header, many);
    free_scanner(&own);
    free_judgments(&judged);
    REQUIRE(!blocks_held);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const int orders[] = {ORDER_TREC, ORDER_TREC9, ORDER_MSMARCO, ORDER_MSMARCO};
    static uint8_t room[MOST_TEXT];
    text_buffer text = {.bytes = room};
    input from = {.at = data + HEADER, .end = data + size};
    int columns;
    if (size < HEADER) return 0;
    columns = data[0] % 4 == 3 ? 3 : 6;
    if (data[1] & 4)
        put_raw(&text, &from, size);
    else
        put_lines(&text, &from, columns);
    end_line(&text);
    check_input(data, &text, columns, orders[data[0] % 4]);
    return 0;
}

#ifdef STANDALONE

/* Inputs one after the other, each behind its length in four bytes, the lowest first. */
static unsigned long run_stored(FILE *stored) {
    unsigned long count = 0;
    uint8_t length[4];
    while (fread(length, 1, 4, stored) == 4) {
        size_t size = length[0] | (size_t)length[1] << 8 | (size_t)length[2] << 16 |
                      (size_t)length[3] << 24;
        uint8_t *data = malloc(size ? size : 1);
        REQUIRE(data && fread(data, 1, size, stored) == size);
        LLVMFuzzerTestOneInput(data, size);
        plain_free(data);
        count++;
    }
    return count;
}

int main(int count, char **paths) {
    int place;
    for (place = 1; place < count; place++) {
        FILE *stored = fopen(paths[place], "rb");
        if (!stored) {
            perror(paths[place]);
            return 2;
        }
        printf("%s: %lu inputs\n", paths[place], run_stored(stored));
        fclose(stored);
    }
    return 0;
}

#endif
