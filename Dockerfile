# An image that may be passed on: Debian's ffmpeg decodes audio files instead of the package node-av, which is not in it.
# docs/container.md has its size, its licences and how it is run. test/image builds it with these steps.
#
#   docker build --build-arg COMMIT=$(git rev-parse --short=12 HEAD) -t edgewise .
ARG BASE=debian:trixie-slim

FROM ${BASE} AS build
# Only used here: node_modules has the Node on which edgewise runs. Debian's npm 9 cannot read the lock file, whose
# `overrides` name packages by alias, so it fetches a newer one.
RUN apt-get update && apt-get install -y --no-install-recommends ca-certificates npm
WORKDIR /edgewise
COPY package.json package-lock.json .npmrc ./
COPY bin bin
RUN npx --yes npm@11.19.1 ci --omit=dev && rm -r node_modules/node-av node_modules/@seydx
COPY LICENSE NOTICE CHANGELOG.md ./
COPY models models
COPY src src
COPY actors actors
COPY engines engines
COPY bench/harness bench/harness
ARG COMMIT=unknown
RUN npm pkg set "commit=${COMMIT}"

FROM ${BASE}
# ffmpeg depends on drivers for graphics, which its programs for the screen load and `ffmpeg` never does: dpkg leaves
# these files out, 192 MB of 467. `ffmpeg -version` fails if it needs one of them.
RUN printf 'path-exclude=%s\n' '/usr/lib/*/libLLVM*' '/usr/lib/*/libgallium-*' '/usr/lib/*/libz3.so*' \
      > /etc/dpkg/dpkg.cfg.d/edgewise \
    && apt-get update && apt-get install -y --no-install-recommends ffmpeg tini \
    && rm -rf /var/lib/apt/lists/* /var/cache/apt/* /var/log/* \
    && ffmpeg -version \
    && useradd --no-create-home --uid 10001 edgewise \
    && install -d -o edgewise -g edgewise -m 0700 /data
COPY --from=build /edgewise /edgewise
RUN printf '#!/bin/sh\nexec /edgewise/node_modules/.bin/node --disable-warning=ExperimentalWarning /edgewise/src/main.ts "$@"\n' \
      > /usr/local/bin/edgewise && chmod 0755 /usr/local/bin/edgewise && edgewise --version
ENV EDGEWISE_DATA_DIR=/data \
    EDGEWISE_DECODER=ffmpeg \
    EDGEWISE_HOST=0.0.0.0
USER edgewise
WORKDIR /data
VOLUME /data
EXPOSE 8080 8081 8082
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=15s --timeout=5s --start-period=60s \
  CMD ["/edgewise/node_modules/.bin/node", "/edgewise/bin/health.js"]
# tini forwards signals and collects processes whose parent, a decoder or an engine, was killed.
ENTRYPOINT ["/usr/bin/tini", "--", "edgewise"]
CMD ["serve"]
