"""Where many independent pieces of work are done: `engine` here, `ray_engine` on a cluster."""
