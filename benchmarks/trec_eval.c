/* trec_eval, from its routines as pytrec_eval-terrier compiled them.
 *
 * The wheel of pytrec_eval-terrier holds all of trec_eval 9.0.8 (-O3) but its main program. This is
 * one, for the benchmark: it reads judgments and a run, finds each query's judgments by going
 * through them as trec_eval does, and prints means with four decimals.
 *
 *     trec_eval -m recip_rank -m ndcg_cut.10 -m map -m recall.1000 QRELS RUN
 *
 * knows these four alone; the options are there so that the official program can stand in for it.
 *
 * The types are those of the wheel's debugging information. Where the official program is at hand,
 * `run.py --trec-eval PATH` measures that instead.
 */

#include <limits.h>
#include <stdio.h>
#include <string.h>

typedef struct { char *name, *parameters; } MeasureArgument;

typedef struct {
    long query_flag, summary_flag, debug_level;
    char *debug_query;
    long relation_flag, average_complete_flag, judged_docs_only_flag, num_docs_in_coll;
    long relevance_level, max_num_docs_per_topic;
    char *rel_info_format, *results_format;
    long zscore_flag;
    MeasureArgument *measure_arguments;
} Settings;

typedef struct { char *name; double value; } Value;
typedef struct { char *query; long num_queries; Value *values; long num_values, max_values; } Scores;
typedef struct { char *query, *format; void *judgments; } QueryQrels;
typedef struct { long count, room; QueryQrels *queries; } Qrels;
typedef struct { char *query, *run, *format; void *documents; } QueryRun;
typedef struct { long count, room; QueryRun *queries; } Run;

typedef struct Measure {
    char *name, *explanation;
    int (*init)(Settings *, struct Measure *, Scores *);
    int (*calculate)(const Settings *, const QueryQrels *, const QueryRun *, const struct Measure *,
                     Scores *);
    int (*accumulate)(const Settings *, const struct Measure *, const Scores *, Scores *);
    int (*average)(const Settings *, const struct Measure *, const Qrels *, Scores *);
    int (*print_query)(const Settings *, const struct Measure *, const Scores *);
    int (*print_mean)(const Settings *, struct Measure *, Scores *);
    void *parameters;
    long index;
} Measure;

extern int te_get_qrels(Settings *, char *, Qrels *);
extern int te_get_trec_results(Settings *, char *, Run *);
extern Measure te_meas_recip_rank, te_meas_ndcg_cut, te_meas_map, te_meas_recall;

/* The wheel is an extension of Python: what it takes from there is never used here. */
void *PyExc_TypeError, *PyFloat_Type, *PySet_Type, *_Py_NoneStruct;

enum { MEASURES = 4, FAILED = -1 };
static Measure *const measures[MEASURES] = {
    &te_meas_recip_rank, &te_meas_ndcg_cut, &te_meas_map, &te_meas_recall};

static const QueryQrels *find(const Qrels *qrels, const char *query) {
    for (long at = 0; at < qrels->count; at++)
        if (strcmp(qrels->queries[at].query, query) == 0) return &qrels->queries[at];
    return NULL;
}

static int fail(const char *what) {
    fprintf(stderr, "trec_eval: %s\n", what);
    return 1;
}

int main(int count, char **given) {
    MeasureArgument arguments[] = {{"ndcg_cut", "10"}, {"recall", "1000"}, {NULL, NULL}};
    Settings settings = {.summary_flag = 1, .relation_flag = 1, .relevance_level = 1,
                         .max_num_docs_per_topic = LONG_MAX, .rel_info_format = "qrels",
                         .results_format = "trec_results", .measure_arguments = arguments};
    Qrels qrels = {0};
    Run run = {0};
    Scores total = {.query = "all"}, scores = {0};
    if (count < 3) return fail("usage: trec_eval [-m MEASURE]... QRELS RUN");
    if (te_get_qrels(&settings, given[count - 2], &qrels) == FAILED) return fail("no qrels");
    if (te_get_trec_results(&settings, given[count - 1], &run) == FAILED) return fail("no run");
    for (int at = 0; at < MEASURES; at++)
        if (measures[at]->init(&settings, measures[at], &total) == FAILED) return fail("no measure");
    Value values[64];
    if (total.num_values > 64) return fail("too many values");
    memcpy(values, total.values, total.num_values * sizeof *values);
    scores.values = values;
    scores.num_values = scores.max_values = total.num_values;
    for (long at = 0; at < run.count; at++) {
        const QueryQrels *judged = find(&qrels, run.queries[at].query);
        if (!judged) continue;
        for (long value = 0; value < scores.num_values; value++) values[value].value = 0;
        scores.query = run.queries[at].query;
        for (int m = 0; m < MEASURES; m++)
            if (measures[m]->calculate(&settings, judged, &run.queries[at], measures[m], &scores) ==
                    FAILED ||
                measures[m]->accumulate(&settings, measures[m], &scores, &total) == FAILED)
                return fail("cannot evaluate");
        total.num_queries++;
    }
    for (int at = 0; at < MEASURES; at++)
        if (measures[at]->average(&settings, measures[at], &qrels, &total) == FAILED ||
            measures[at]->print_mean(&settings, measures[at], &total) == FAILED)
            return fail("no mean");
    return 0;
}
