# One image for both doors: `node dist/ssp.js` (the default) and `node dist/scheduler.js`.
#
# Three stages, because better-sqlite3 may have to be compiled and neither a compiler nor the tests' dependencies belong into what
# runs. The last stage needs no writable root: all that is kept is under /data.
#
# Bases stand by digest, so that a tag that is pushed again changes nothing here: `npx vite-node scripts/pinBase.ts <version of node>` takes
# newer ones.

FROM node:24.21.0-bookworm@sha256:6dac556d980b7f0e5498d08f08cee0ca67798b4ad6c23964a9214920e67758d0 AS base
WORKDIR /app
COPY package.json package-lock.json ./

# With everything, to compile TypeScript.
FROM base AS build
RUN npm ci --no-audit --no-fund
COPY tsconfig.json tsconfig.build.json ./
COPY scripts/bundle.mjs ./scripts/
COPY src ./src
RUN npm run build

# What runs: production dependencies, better-sqlite3 built for this system.
FROM base AS production
# The clients of SVC_LOG_URL are optional peers of the package, and part of the image: moved to what npm installs in production.
RUN npm pkg delete "devDependencies[@effect/sql-pg]" "devDependencies[@nats-io/transport-node]" && \
    npm pkg set "dependencies[@effect/sql-pg]=0.53.0" "dependencies[@nats-io/transport-node]=3.4.0"
# The database's SDK names the compiler as a peer, for its types alone: nothing that runs loads it.
RUN npm ci --omit=dev --no-audit --no-fund && rm -r node_modules/typescript node_modules/.bin/tsc node_modules/.bin/tsserver
# What is in the image, as CycloneDX: read from what is installed, after what is not needed has gone.
COPY scripts/sbom.mjs ./scripts/
RUN node scripts/sbom.mjs > sbom.cdx.json

FROM node:24.21.0-bookworm-slim@sha256:d6aa754f16b3197301076f047b5def2f02ea1dbbc2ca920407d46d7ec7f87b20
# The heap may take what SVC_MAX_MEMORY allows of the container's memory by default; V8 by itself would stop at a
# quarter of it. Raise the two together.
ENV NODE_ENV=production \
    NODE_OPTIONS=--max-old-space-size-percentage=75 \
    LISTEN_ADDR=:8667 \
    SVC_DATA_DIR=/data \
    SVC_SCHEDULER_REPLICA_DB_PATH=/data/replica \
    SVC_SCHEDULER_WAL_PATH=/data/event_wal.log
WORKDIR /app
COPY --from=production /app/node_modules ./node_modules
COPY --from=production /app/sbom.cdx.json ./
COPY --from=build /app/dist ./dist
COPY package.json svc.yml.example ./
COPY docs/example ./docs/example
# Owned by root and readable by all; only /data belongs to the service. 1000 is the image's own user `node`.
RUN install -d -o 1000 -g 1000 -m 0750 /data
USER 1000:1000
VOLUME /data
EXPOSE 8667 9667
# The doors handle SIGTERM, finish what is in flight and leave within 10 s, so that node can be process 1.
STOPSIGNAL SIGTERM
# Either program is asked, whichever runs as process 1 (behind an init of the engine its arguments hold the same words);
# a command that serves nothing, such as `dist/jobs.js run`, has nothing to be asked.
HEALTHCHECK --interval=15s --timeout=10s --start-period=30s --retries=3 CMD program=$(tr '\0' '\n' < /proc/1/cmdline | grep -m 1 -E '(^|/)(ssp|scheduler)\.js$') || exit 0; exec node "$program" --health
ENTRYPOINT ["node"]
CMD ["dist/ssp.js"]
