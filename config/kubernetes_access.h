// SPDX-License-Identifier: Apache-2.0
// Where the API server is and as whom to ask it: from a kubeconfig, or as a pod of the cluster.
//
// Of a kubeconfig these are read: current-context, and of its cluster `server`,
// `certificate-authority(-data)`, of its user `token`, `tokenFile`, `client-certificate(-data)`,
// `client-key(-data)`, of the context `cluster`, `user` and `namespace`. What would change how the
// server is reached and is not one of them (exec, auth-provider, username, proxy-url, as …) is
// refused. In a cluster: KUBERNETES_SERVICE_HOST and _PORT, and the files `token`, `ca.crt` and
// `namespace` of the service account's directory.
#pragma once

#include "base/arena.h"
#include "base/buffer.h"
#include "base/http/tls.h"
#include "base/http/token_file.h"
#include "config/option.h"
#include "config/problem.h"

struct api_access_config {
    const char *kubeconfig; // NULL: as a pod
    const char *context;
    const char *service_account_directory;
};

// The rows for a `struct api_access_config` that is the field `field` of `owner`.
// NOLINTBEGIN(bugprone-macro-parentheses): names of types and members take none
#define API_ACCESS_OPTIONS(owner, field)                                                           \
    OPTION_IN(owner, field, kubeconfig, OPTION_TEXT,                                               \
              .help =                                                                              \
                  "kubeconfig to take server, certificates and token from; without it culprit "    \
                  "must be a pod of the cluster and uses its service account"),                    \
        OPTION_IN(owner, field, context, OPTION_TEXT,                                              \
                  .help = "context of the kubeconfig, instead of its `current-context`"),          \
        OPTION_IN(owner, field, service_account_directory, OPTION_TEXT,                            \
                  .default_value = "/var/run/secrets/kubernetes.io/serviceaccount",                \
                  .help = "directory with the service account's `token` and `ca.crt`")
// NOLINTEND(bugprone-macro-parentheses)

// Adds a problem for a context without a kubeconfig. The rows' keys stand at the top level.
void api_access_check(const struct api_access_config *config, struct problem_list *problems);

// Names as RFC 1123 has them: labels (namespaces) have 63 bytes at most, subdomains (nodes, pods)
// 253 and dots.
enum { KUBERNETES_LABEL_MAX = 63, KUBERNETES_SUBDOMAIN_MAX = 253 };
bool kubernetes_is_label(struct slice name);
bool kubernetes_is_subdomain(struct slice name);

struct api_access {
    struct arena arena; // holds the texts
    const char *server; // "https://10.0.0.1:443", without a slash at its end
    struct http_client_tls tls;
    const char *token; // written in the kubeconfig; NULL: none
    struct token_file token_file;
    bool has_token_file;
    // The context's, or the service account's; "": none is named.
    char namespace[KUBERNETES_LABEL_MAX + 1];
    struct buffer ca, cert, key; // PEM that stood in the kubeconfig
};

// STATUS_CONFIG with a sentence that shows no secret. Release it either way.
enum status api_access_open(struct api_access *access, const struct api_access_config *config,
                            struct error *error) MUST_USE;
void api_access_release(struct api_access *access);
// The token to send now: that of the file is read again when it has changed. `again`: also within
// the second of the last look. NULL: there is none. `changed` may be NULL.
const char *api_access_token(struct api_access *access, bool again, bool *changed);
