/* Lists the choices of --transport: what gradients and parameters travel over. */
#ifndef COMMON_TRANSPORT_TRANSPORT_KIND_H
#define COMMON_TRANSPORT_TRANSPORT_KIND_H

enum transport_kind {
    TRANSPORT_AUTO, // shared memory or ipc on one host, tcp across hosts
    TRANSPORT_TCP,
    TRANSPORT_IPC, // Unix sockets: all processes on one host
    TRANSPORT_SHM, // values are read in shared memory, the rest goes by ipc
};

#endif
