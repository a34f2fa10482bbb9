/* Tells a service manager that asks for it (NOTIFY_SOCKET, as systemd's Type=notify) how this process is. */
#ifndef SANDBOXD_MANAGER_H
#define SANDBOXD_MANAGER_H
/* "READY=1" or "STOPPING=1". Without such a manager it does nothing; a failure is only logged. */
void manager_tell(const char *state);
#endif
