/* The compiled scanner as a Python type; what it does is in _scan_core.h and compiled.py. */

#define Py_LIMITED_API 0x030B0000
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "_scan_core.h"

typedef struct {
    PyObject_HEAD
    scanner core;
    judgments judged;
    int busy;
} ScannerObject;

/* A str as UTF-8, which lives as long as the str. */
static const uint8_t *utf8(PyObject *text, Py_ssize_t *length) {
    return (const uint8_t *)PyUnicode_AsUTF8AndSize(text, length);
}

static int take_documents(judgments *judged, PyObject *grades) {
    PyObject *key, *value;
    Py_ssize_t at = 0, length;
    while (PyDict_Next(grades, &at, &key, &value)) {
        const uint8_t *text = utf8(key, &length);
        long long grade = text ? PyLong_AsLongLong(value) : -1;
        if (!text || (grade == -1 && PyErr_Occurred())) return 0;
        if (!add_document(judged, text, (size_t)length, grade)) {
            PyErr_NoMemory();
            return 0;
        }
    }
    return 1;
}

static int take_judgments(judgments *judged, PyObject *queries) {
    PyObject *key, *value;
    Py_ssize_t at = 0, length;
    while (PyDict_Next(queries, &at, &key, &value)) {
        const uint8_t *text = utf8(key, &length);
        if (!text) return 0;
        if (!PyDict_Check(value)) {
            PyErr_SetString(PyExc_TypeError, "grades of a query must be a dict");
            return 0;
        }
        if (!add_query(judged, text, (size_t)length)) {
            PyErr_NoMemory();
            return 0;
        }
        if (!take_documents(judged, value)) return 0;
    }
    if (index_queries(judged)) return 1;
    PyErr_NoMemory();
    return 0;
}

static PyObject *scanner_new(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
    static char *names[] = {"judgments", "columns", "order", "depth", NULL};
    PyObject *queries;
    int columns, order;
    Py_ssize_t depth;
    ScannerObject *self;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O!iin", names, &PyDict_Type, &queries,
                                     &columns, &order, &depth))
        return NULL;
    if ((columns != 3 && columns != 6) || order < ORDER_TREC || order > ORDER_MSMARCO ||
        (columns == 3 && order != ORDER_MSMARCO) || depth < 0 || depth > 1000000) {
        PyErr_SetString(PyExc_ValueError, "no such columns, order or depth");
        return NULL;
    }
    self = (ScannerObject *)PyType_GenericAlloc(type, 0); /* zeroed */
    if (!self) return NULL;
    self->core.columns = columns;
    self->core.order = order;
    self->core.depth = (size_t)depth;
    self->core.judged = &self->judged;
    if (!take_judgments(&self->judged, queries)) {
        Py_DECREF(self);
        return NULL;
    }
    return (PyObject *)self;
}

static void scanner_dealloc(PyObject *object) {
    ScannerObject *self = (ScannerObject *)object;
    PyTypeObject *type = Py_TYPE(object);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    free_scanner(&self->core);
    free_judgments(&self->judged);
    release(object);
    Py_DECREF(type);
}

static PyObject *as_bytes(const void *memory, size_t count, size_t item) {
    return PyBytes_FromStringAndSize(memory ? memory : "", (Py_ssize_t)(count * item));
}

static PyObject *scanner_scan(PyObject *object, PyObject *args) {
    ScannerObject *self = (ScannerObject *)object;
    scanner *core = &self->core;
    PyObject *text;
    char *data;
    Py_ssize_t size;
    int last, done;
    int64_t consumed, lines;
    if (!PyArg_ParseTuple(args, "O!p", &PyBytes_Type, &text, &last)) return NULL;
    if (PyBytes_AsStringAndSize(text, &data, &size)) return NULL;
    if (size && (data[size - 1] != '\n' || (size_t)size > UINT32_MAX)) {
        PyErr_SetString(PyExc_ValueError, "text must be whole lines, and at most 4 GiB");
        return NULL;
    }
    if (self->busy) {
        PyErr_SetString(PyExc_RuntimeError, "a scanner serves one thread at a time");
        return NULL;
    }
    self->busy = 1;
    Py_BEGIN_ALLOW_THREADS
    done = scan_text(core, (const uint8_t *)data, (size_t)size, last, &consumed, &lines);
    Py_END_ALLOW_THREADS
    self->busy = 0;
    if (!done) return PyErr_NoMemory();
    return Py_BuildValue("LLNNN", (long long)consumed, (long long)lines,
                         as_bytes(core->segments, core->n_segments, sizeof *core->segments),
                         as_bytes(core->hits, core->n_hits, sizeof *core->hits),
                         as_bytes(core->tops, core->n_tops, sizeof *core->tops));
}

static PyObject *scanner_columns(PyObject *object, PyObject *args) {
    ScannerObject *self = (ScannerObject *)object;
    Py_ssize_t first, count;
    if (!PyArg_ParseTuple(args, "nn", &first, &count)) return NULL;
    if (self->busy || first < 0 || count < 0 || (size_t)first > self->core.n_rows ||
        (size_t)count > self->core.n_rows - (size_t)first) {
        PyErr_SetString(PyExc_ValueError, "no such rows");
        return NULL;
    }
    return as_bytes(self->core.rows ? self->core.rows + first : NULL, (size_t)count,
                    sizeof *self->core.rows);
}

static PyMethodDef scanner_methods[] = {
    {"scan", scanner_scan, METH_VARARGS,
     "scan(text, last) -> (bytes and lines dealt with, segments, hits, tops)"},
    {"columns", scanner_columns, METH_VARARGS,
     "columns(first, count) -> rows of the latest text"},
    {NULL, NULL, 0, NULL}};

static PyType_Slot scanner_slots[] = {
    {Py_tp_doc, "Scanner(judgments, columns, order, depth): see compiled.py."},
    {Py_tp_new, scanner_new},
    {Py_tp_dealloc, scanner_dealloc},
    {Py_tp_methods, scanner_methods},
    {0, NULL}};

static PyType_Spec scanner_spec = {"heldout.trec.scanning._scan.Scanner", sizeof(ScannerObject), 0,
                                   Py_TPFLAGS_DEFAULT, scanner_slots};

static int execute(PyObject *module) {
    PyObject *type = PyType_FromSpec(&scanner_spec);
    if (!type || PyModule_AddObjectRef(module, "Scanner", type)) {
        Py_XDECREF(type);
        return -1;
    }
    Py_DECREF(type);
    /* What scanners.py expects to find here; raise both when either changes. */
    return PyModule_AddIntConstant(module, "MOST_SEGMENTS", MOST_SEGMENTS) ||
                   PyModule_AddIntConstant(module, "INTERFACE", 2)
               ? -1
               : 0;
}

static PyModuleDef_Slot slots[] = {{Py_mod_exec, execute}, {0, NULL}};

static PyModuleDef definition = {PyModuleDef_HEAD_INIT, "_scan", "The compiled scanner.", 0, NULL,
                                 slots, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__scan(void) { return PyModuleDef_Init(&definition); }
