struct workqueue_struct { int max_active; };
