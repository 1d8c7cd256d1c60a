# syntax=docker/dockerfile:1
FROM node:20-bookworm-slim AS build
WORKDIR /build
COPY package.json package-lock.json ./
RUN npm ci
COPY tsconfig.json tsconfig.build.json ./
COPY scripts scripts
COPY raft raft
COPY placement placement
COPY src src
RUN npm run build && npm prune --omit=dev

FROM node:20-bookworm-slim
ENV NODE_ENV=production
WORKDIR /opt/evenkeel
COPY --from=build /build/package.json ./
COPY --from=build /build/node_modules node_modules
COPY --from=build /build/dist dist
COPY examples examples
# The data directory belongs to the user that the process runs as; a volume mounted here takes that over.
RUN install -d -o node -g node /var/lib/evenkeel
USER node
VOLUME /var/lib/evenkeel
EXPOSE 7401 7501
# Alive, not ready: a node without a quorum must not be restarted for it.
HEALTHCHECK --interval=5s --timeout=3s --start-period=10s --retries=3 \
  CMD ["node", "-e", "fetch('http://127.0.0.1:7401/livez').then((r) => process.exit(r.ok ? 0 : 1), () => process.exit(1))"]
ENTRYPOINT ["node", "--max-semi-space-size=8", "/opt/evenkeel/dist/src/main.js"]
CMD ["--help"]
