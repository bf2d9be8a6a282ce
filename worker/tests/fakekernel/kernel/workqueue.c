int max_active = 512;

int nr_active(void)
{
	return 1;
}

int nr_idle(void)
{
	return 2;
}

int nr_workers(void)
{
	return nr_active() + nr_idle();
}
