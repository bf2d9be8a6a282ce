#define IDLE_S 1
struct workqueue_struct { int max_active; };
