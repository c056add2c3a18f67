// SPDX-License-Identifier: Apache-2.0
// What the builder's sources need. By hand, because `go mod tidy`, which the builder would run,
// also asks for modules that only tests need and that are not to be had.
module culprit.example/collector

go 1.26.0

require (
	github.com/open-telemetry/opentelemetry-collector-contrib/exporter/fileexporter v0.160.0
	github.com/open-telemetry/opentelemetry-collector-contrib/processor/filterprocessor v0.160.0
	github.com/open-telemetry/opentelemetry-collector-contrib/receiver/filelogreceiver v0.160.0
	go.opentelemetry.io/collector/component v1.66.0
	go.opentelemetry.io/collector/confmap v1.66.0
	go.opentelemetry.io/collector/confmap/provider/envprovider v1.66.0
	go.opentelemetry.io/collector/confmap/provider/fileprovider v1.66.0
	go.opentelemetry.io/collector/exporter v1.66.0
	go.opentelemetry.io/collector/exporter/nopexporter v0.160.0
	go.opentelemetry.io/collector/extension v1.66.0
	go.opentelemetry.io/collector/otelcol v0.160.0
	go.opentelemetry.io/collector/processor v1.66.0
	go.opentelemetry.io/collector/processor/batchprocessor v0.160.0
	go.opentelemetry.io/collector/receiver v1.66.0
	go.opentelemetry.io/collector/receiver/otlpreceiver v0.160.0
)
