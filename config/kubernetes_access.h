// SPDX-License-Identifier: Apache-2.0
// Where the API server is and as whom to ask it: from a kubeconfig, or as a pod of the cluster.
//
// Of a kubeconfig these are read: current-context, and of its cluster `server`,
// `certificate-authority(-data)`, of its user `token`, `tokenFile`, `client-certificate(-data)`,
// `client-key(-data)`, of the context `cluster` and `user`. What would change how the server is
// reached and is not one of them (exec, auth-provider, username, proxy-url, as …) is refused.
// In a cluster: KUBERNETES_SERVICE_HOST and _PORT, and the files `token` and `ca.crt` of the
// service account's directory.
#pragma once

#include "base/arena.h"
#include "base/buffer.h"
#include "base/http/tls.h"
#include "base/http/token_file.h"

struct api_access {
    struct arena arena; // holds the texts
    const char *server; // "https://10.0.0.1:443", without a slash at its end
    struct http_client_tls tls;
    const char *token; // written in the kubeconfig; NULL: none
    struct token_file token_file;
    bool has_token_file;
    struct buffer ca, cert, key; // PEM that stood in the kubeconfig
};

// `kubeconfig` NULL: as a pod, with the files in `account_directory`. `context` NULL: the current
// one. STATUS_CONFIG with a sentence that shows no secret. Release it either way.
enum status api_access_open(struct api_access *access, const char *kubeconfig, const char *context,
                            const char *account_directory, struct error *error) MUST_USE;
void api_access_release(struct api_access *access);
// The token to send now: that of the file is read again when it has changed. `again`: also within
// the second of the last look. NULL: there is none. `changed` may be NULL.
const char *api_access_token(struct api_access *access, bool again, bool *changed);
