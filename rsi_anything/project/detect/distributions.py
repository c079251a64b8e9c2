"""Names of distributions whose import name differs, and imports that need a second distribution."""

DISTRIBUTIONS = {
    "cv2": "opencv-python", "sklearn": "scikit-learn", "skimage": "scikit-image", "PIL": "pillow", "yaml": "pyyaml",
    "bs4": "beautifulsoup4", "Bio": "biopython", "dateutil": "python-dateutil", "dotenv": "python-dotenv",
    "google.protobuf": "protobuf", "git": "gitpython", "github": "pygithub", "jose": "python-jose", "jwt": "pyjwt",
    "magic": "python-magic", "OpenGL": "pyopengl", "serial": "pyserial", "usb": "pyusb", "zmq": "pyzmq",
    "wx": "wxpython", "attr": "attrs", "Crypto": "pycryptodome", "docx": "python-docx", "fitz": "pymupdf",
    "faiss": "faiss-cpu", "gi": "pygobject", "hydra": "hydra-core", "umap": "umap-learn",
    "pl_bolts": "lightning-bolts", "tensorboardX": "tensorboardx", "pytorch_lightning": "pytorch-lightning",
    "torch_geometric": "torch-geometric", "torch_scatter": "torch-scatter",
    "sentence_transformers": "sentence-transformers", "flash_attn": "flash-attn",
    "prometheus_client": "prometheus-client", "stable_baselines3": "stable-baselines3",
    "imblearn": "imbalanced-learn", "community": "python-louvain", "sko": "scikit-opt", "skopt": "scikit-optimize",
    "Levenshtein": "python-levenshtein", "mpl_toolkits": "matplotlib", "pylab": "matplotlib", "ale_py": "ale-py",
    "absl": "absl-py", "ml_collections": "ml-collections", "igraph": "python-igraph",
    "tensorflow_datasets": "tensorflow-datasets", "tensorflow_probability": "tensorflow-probability",
    "win32api": "pywin32", "pytest_mock": "pytest-mock", "pkg_resources": "setuptools", "rouge_score": "rouge-score",
    "huggingface_hub": "huggingface-hub", "mujoco_py": "mujoco-py",
}  # fmt: skip
"""Import name to distribution name; an import that is not here is its own distribution."""

EXTRA = {
    "torch.utils.tensorboard": "tensorboard",
    "lightning.pytorch": "lightning",
    "pandas.io.excel": "openpyxl",
    "flax.metrics.tensorboard": "tensorboard",
}
"""Imported modules that need a distribution besides the one that holds them."""
