"""Records by name: functions of the language, learned functions, methods of integration, normalisations of graphs."""
