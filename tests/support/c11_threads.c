// SPDX-License-Identifier: Apache-2.0
// C11 threads over POSIX ones, preloaded when tests run under ThreadSanitizer: the runtime of gcc
// 12 does not know threads that librdkafka makes with thrd_create, nor its locks. The types are
// those of glibc, which are the POSIX ones underneath.
#include <pthread.h>
#include <stdlib.h>
#include <threads.h>

_Static_assert(sizeof(mtx_t) == sizeof(pthread_mutex_t), "glibc's mtx_t is a pthread_mutex_t");
_Static_assert(sizeof(cnd_t) == sizeof(pthread_cond_t), "glibc's cnd_t is a pthread_cond_t");
_Static_assert(sizeof(thrd_t) == sizeof(pthread_t), "glibc's thrd_t is a pthread_t");

struct start {
    thrd_start_t function;
    void *argument;
};

static void *run(void *argument) {
    struct start start = *(struct start *)argument;
    free(argument);
    return (void *)(long)start.function(start.argument);
}

static int answer(int failure) {
    return failure == 0 ? thrd_success : failure == 110 ? thrd_timedout : thrd_error;
}

int thrd_create(thrd_t *thread, thrd_start_t function, void *argument) {
    struct start *start = malloc(sizeof *start);
    if (start == NULL)
        return thrd_nomem;
    *start = (struct start){function, argument};
    return answer(pthread_create((pthread_t *)thread, NULL, run, start));
}

int thrd_join(thrd_t thread, int *result) {
    void *value = NULL;
    int failure = pthread_join((pthread_t)thread, &value);
    if (result != NULL)
        *result = (int)(long)value;
    return answer(failure);
}

thrd_t thrd_current(void) {
    return (thrd_t)pthread_self();
}

int mtx_init(mtx_t *mutex, int type) {
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    if (type & mtx_recursive)
        pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_RECURSIVE);
    int failure = pthread_mutex_init((pthread_mutex_t *)mutex, &attributes);
    pthread_mutexattr_destroy(&attributes);
    return answer(failure);
}

void mtx_destroy(mtx_t *mutex) {
    pthread_mutex_destroy((pthread_mutex_t *)mutex);
}

int mtx_lock(mtx_t *mutex) {
    return answer(pthread_mutex_lock((pthread_mutex_t *)mutex));
}

int mtx_unlock(mtx_t *mutex) {
    return answer(pthread_mutex_unlock((pthread_mutex_t *)mutex));
}

int cnd_init(cnd_t *condition) {
    return answer(pthread_cond_init((pthread_cond_t *)condition, NULL));
}

void cnd_destroy(cnd_t *condition) {
    pthread_cond_destroy((pthread_cond_t *)condition);
}

int cnd_signal(cnd_t *condition) {
    return answer(pthread_cond_signal((pthread_cond_t *)condition));
}

int cnd_broadcast(cnd_t *condition) {
    return answer(pthread_cond_broadcast((pthread_cond_t *)condition));
}

int cnd_wait(cnd_t *condition, mtx_t *mutex) {
    return answer(pthread_cond_wait((pthread_cond_t *)condition, (pthread_mutex_t *)mutex));
}

int cnd_timedwait(cnd_t *condition, mtx_t *mutex, const struct timespec *until) {
    return answer(
        pthread_cond_timedwait((pthread_cond_t *)condition, (pthread_mutex_t *)mutex, until));
}

void call_once(once_flag *flag, void (*function)(void)) {
    pthread_once((pthread_once_t *)flag, function);
}
