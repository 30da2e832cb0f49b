"""What is: the job, its children and its driver, read and made into typed facts."""
