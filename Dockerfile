# The operator and the tool that its init containers run: two static binaries and nothing else, no shell among it.
FROM rust:1.89-slim-bookworm AS build
RUN apt-get update && apt-get install -y --no-install-recommends gcc libc6-dev && rm -rf /var/lib/apt/lists/*
WORKDIR /source
COPY Cargo.toml Cargo.lock ./
COPY src src
COPY tests/demo tests/demo
COPY tests/bench tests/bench
# --target keeps what only the build itself runs from being linked statically too
RUN host=$(rustc -vV | sed -n 's/^host: //p') \
 && RUSTFLAGS="-C target-feature=+crt-static" cargo build --release --locked --bins --target "$host" \
 && mkdir /out && cp "target/$host/release/kafka-features-operator" "target/$host/release/kafka-storage" /out/

FROM scratch
COPY --from=build /out/kafka-features-operator /kafka-features-operator
COPY --from=build /out/kafka-storage /kafka-storage
# the user of Kafka's own image: what init containers of pods that name no user format belongs to Kafka
USER 1000:1000
ENTRYPOINT ["/kafka-features-operator"]
