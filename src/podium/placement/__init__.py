"""Rules and arithmetic of placing pods that several plugins share."""
