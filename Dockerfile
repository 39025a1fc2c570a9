# Tableread in a container: docs/operate/install.md tells how to build and run it.
#
#   docker build .                            the page, the draft voice, speech servers: no models
#   docker build --build-arg DEVICE=cpu .     with the neural models, for processors
#   docker build --build-arg DEVICE=cuda .    the same for NVIDIA cards
ARG DEVICE=none

# Packages before code, so that a change of the code doesn't install them again.
FROM python:3.11.14-slim-bookworm AS packages-none
ENV PYTHONDONTWRITEBYTECODE=1 PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1
WORKDIR /opt/tableread
COPY locks/3.11 locks/3.11
# Every package has the hash that the lock names, and nothing is built with what has none.
RUN pip install --require-hashes --no-deps --only-binary :all: -r locks/3.11/studio.txt

FROM packages-none AS packages-cpu
# PyPI's torch for Linux brings several gigabytes of CUDA; its own index has one without, whose
# hashes are not in the lock.
COPY requirements.txt ./
RUN sed -n '/^torch\(audio\)\?==/p' requirements.txt > torch.txt \
    && pip install --no-deps --index-url https://download.pytorch.org/whl/cpu -r torch.txt
RUN pip install --require-hashes --no-deps --only-binary :all: -r locks/3.11/models.txt \
    && pip install --require-hashes --no-deps --no-build-isolation -r locks/3.11/models-alone.txt

FROM packages-none AS packages-cuda
# Triton compiles a launcher for its kernels.
RUN apt-get update && apt-get install --yes --no-install-recommends gcc g++ libc6-dev \
    && rm -rf /var/lib/apt/lists/*
RUN pip install --require-hashes --no-deps --only-binary :all: \
        -r locks/3.11/models-torch.txt -r locks/3.11/models.txt \
    && pip install --require-hashes --no-deps --no-build-isolation -r locks/3.11/models-alone.txt

FROM packages-none AS wheel
RUN pip install --require-hashes --no-deps --only-binary :all: -r locks/3.11/build.txt
COPY pyproject.toml README.md LICENSE ./
COPY studio studio
COPY assets assets
RUN pip wheel --no-deps --no-build-isolation --wheel-dir /wheel .

FROM packages-${DEVICE} AS tableread
RUN --mount=type=bind,from=wheel,source=/wheel,target=/wheel pip install --no-deps /wheel/*.whl
RUN useradd --create-home --uid 1000 tableread && mkdir /data && chown tableread /data
# What outlives the container: projects and voices, weights, and Chatterbox's Chinese words.
ENV TABLEREAD_WORKSPACE=/data/workspace HF_HOME=/data/huggingface PKUSEG_HOME=/data/pkuseg
VOLUME /data
# By number, as Kubernetes knows no names of the image.
USER 1000
WORKDIR /home/tableread
EXPOSE 7860
HEALTHCHECK --interval=30s --timeout=10s --start-period=60s \
    CMD ["python", "-c", "import urllib.request as r; r.urlopen('http://127.0.0.1:7860/healthz/live')"]
ENTRYPOINT ["tableread"]
CMD ["serve", "--host", "0.0.0.0", "--port", "7860", "--no-browser"]
