"""The benchmarks, in the order in which the page of results quotes them, and what each measures."""

from __future__ import annotations

NAMES = {
    "accuracy": "test error on MNIST against the paper's figures (minutes)",
    "tabular": "error, size and times on small real tables beside SVC, trees, networks and others (hours)",
    "fit": "a complete fit and a prediction against scikit-learn's Gaussian SVC (minutes)",
    "z_step": "the exact Z-step against OSQP and qpsolvers",
    "g_step": "the interior-point g-step against LIBSVM and LIBLINEAR (minutes)",
    "adaptive": "learned centres: error, size and training time against SVC and Nystroem (hours)",
    "calibration": "probabilities: log loss, calibration error and time beside CalibratedClassifierCV (minutes)",
    "monitoring": "the error of scored rows estimated without labels, beside their true error (minutes)",
    "search": "number of trials that a search with TPE needs, beside random search (a quarter of an hour)",
    "two_dimensions": "ten classes in two dimensions: ClassPlane beside UMAP, LDA and PCA (ten minutes)",
    "predict": "prediction with learned centres against SVC, all rows at once and one by one (minutes)",
    "scale": "time and memory of a fit with learned centres, by number of training rows (minutes)",
    "shards": "fits on blocks of rows: equal models, two million rows, Ray and its costs (40 minutes, 2 GB of disk)",
    "data": "time and peak memory of preparing MNIST and 20 newsgroups",
    "large_table": "memory for five million rows of a mixed table, from new to the report (an hour, 8 GB of disk)",
    "pipeline": "overhead of Prefect, Ray, MLflow and the journal, beside the work itself (ten minutes)",
    "story": "a model's life in production: retrained, refused, promoted, scoring, serving, rolled back (minutes)",
    "serve": "single rows over HTTP: time, and answers during a promotion and while processes are killed (minutes)",
    "imports": "import time of our classifier against `import sklearn.svm`",
    "baselines": "the methods of the paper and today's, on MNIST and two newsgroups (an hour)",
}
