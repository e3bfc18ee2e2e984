# The image holds a virtual environment with the wheel and nothing of the sources.
# It runs with a read-only root file system: data in /var/lib/flue-grpc, the socket
# in /run/flue-grpc, the transcripts' home mounted read-only at /home/agent.

FROM python:3.13-slim-bookworm AS build

ENV PIP_DISABLE_PIP_VERSION_CHECK=1 \
    PIP_NO_CACHE_DIR=1
WORKDIR /src
COPY requirements-dev.lock ./
RUN python -m venv /opt/build \
    && /opt/build/bin/python -m pip install --constraint requirements-dev.lock build
COPY pyproject.toml README.md LICENSE ./
COPY generated/python/ generated/python/
COPY flue_grpc/ flue_grpc/
RUN /opt/build/bin/python -m build --wheel --outdir /dist
RUN python -m venv /opt/flue-grpc \
    && /opt/flue-grpc/bin/python -m pip install --constraint requirements-dev.lock \
        "$(echo /dist/*.whl)[otel,prometheus]" \
    && /opt/flue-grpc/bin/python -m pip uninstall --yes pip \
    && /opt/flue-grpc/bin/python -m compileall -q /opt/flue-grpc

FROM python:3.13-slim-bookworm

COPY --from=build /opt/flue-grpc /opt/flue-grpc
RUN install -d -m 0700 -o 65532 -g 65532 /var/lib/flue-grpc /run/flue-grpc \
    && install -d -m 0755 /home/agent

ENV PATH=/opt/flue-grpc/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1 \
    HOME=/home/agent \
    FLUE_GRPC_LISTEN=unix:/run/flue-grpc/flue.sock \
    FLUE_GRPC_DATA_DIR=/var/lib/flue-grpc \
    FLUE_GRPC_LOG_FORMAT=json
USER 65532:65532
VOLUME ["/var/lib/flue-grpc", "/run/flue-grpc"]
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s --retries=3 \
    CMD ["flue-grpc", "health"]
ENTRYPOINT ["flue-grpc"]
CMD ["serve"]
