"""The benchmarks, in the order in which the page of results quotes them, and what each measures."""

from __future__ import annotations

NAMES = {
    "accuracy": "test error on MNIST against the paper's figures (minutes)",
    "tabular": "error, size and times on small real tables beside SVC, trees, networks and others (hours)",
    "fit": "a whole fit and prediction against scikit-learn's Gaussian SVC (minutes)",
    "z_step": "the exact Z-step against OSQP and qpsolvers",
    "g_step": "the interior-point g-step against LIBSVM and LIBLINEAR (minutes)",
    "adaptive": "learned centres: error, size and training time against SVC and Nystroem (half an hour)",
    "calibration": "probabilities: log loss, calibration error and time beside CalibratedClassifierCV (minutes)",
    "monitoring": "the error of scored rows estimated without labels, beside the error (minutes)",
    "search": "trials that a search needs which learns, beside random points (a quarter of an hour)",
    "two_dimensions": "ten classes in the plane: ClassPlane beside UMAP, LDA and PCA (ten minutes)",
    "predict": "prediction with learned centres against SVC, all at once and one by one (minutes)",
    "scale": "time and memory of a fit with learned centres over the training rows (minutes)",
    "shards": "one fit on blocks of rows: the same model, two million rows, Ray, its costs (40 minutes, 2 GB of disk)",
    "data": "seconds and peak memory of preparing MNIST and 20 newsgroups",
    "large_table": "five million rows of a mixed table from new to the report: memory (an hour, 8 GB of disk)",
    "pipeline": "what Prefect, Ray, MLflow and the journal cost beside the work that they arrange (ten minutes)",
    "story": "a model's life in production: retrained, refused, promoted, scoring, serving, rolled back (minutes)",
    "serve": "single rows over HTTP: time, and answers while the alias moves and processes are killed (minutes)",
    "imports": "the import of our classifier against `import sklearn.svm`",
    "baselines": "every method the paper compares with and today's, on MNIST and two newsgroups (an hour)",
}
