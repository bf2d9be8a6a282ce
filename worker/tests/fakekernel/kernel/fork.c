const char built[] = BUILT;

void start_kernel(void)
{
	for (;;)
		;
}
