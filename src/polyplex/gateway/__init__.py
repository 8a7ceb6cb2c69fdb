"""The composition: clients on one side, servers on the other, and the straight line between them (`pipeline`)."""
