#include "workqueue.h"

const char built[] = BUILT;
const int idle_s = IDLE_S;

void start_kernel(void)
{
	for (;;)
		;
}
